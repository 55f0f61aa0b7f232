//! Numbers about runs since this engine was opened, for whoever watches it. Counting costs an addition.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use interlock_core::run::change::{ChangeSet, SideWrite};
use interlock_core::state::{AssignmentState, RunState};

const STATES: usize = RunState::ALL.len();
/// Upper bounds of run durations, in milliseconds; longer ones fall behind the last.
pub const DURATION_BOUNDS_MS: [u64; 10] = [10, 50, 250, 1_000, 5_000, 30_000, 120_000, 600_000, 3_600_000, 86_400_000];
const BUCKETS: usize = DURATION_BOUNDS_MS.len() + 1;

#[derive(Default)]
pub struct Counters {
    /// From (the last row: from nothing) and to.
    transitions: [[AtomicU64; STATES]; STATES + 1],
    durations: [Durations; STATES],
    /// Batches of output that came for an attempt that was over.
    output_refused: AtomicU64,
    /// What became of offers of runs, by worker.
    assignments: Mutex<BTreeMap<(String, AssignmentState), u64>>,
}

/// Workers that are counted by name; what others do is counted together.
const WORKERS_MAX: usize = 100;
const OTHER_WORKERS: &str = "other";

/// How long runs took that ended in one state.
#[derive(Default)]
struct Durations {
    buckets: [AtomicU64; BUCKETS],
    sum_ms: AtomicU64,
}

/// A histogram as it stands: counts for each bound and behind the last, and the sum of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    pub counts: Vec<u64>,
    pub sum_ms: u64,
}

impl Counters {
    pub(crate) fn record(&self, from: Option<RunState>, to: RunState, change: &ChangeSet) {
        if from != Some(to) {
            self.transitions[from.map_or(STATES, index)][index(to)].fetch_add(1, Ordering::Relaxed);
        }
        for write in &change.side {
            if let SideWrite::PutAssignment(record) = write {
                self.assignment(&record.worker, record.state);
            }
        }
        if let Some(end) = &change.end {
            let bucket = DURATION_BOUNDS_MS.iter().position(|bound| end.duration_ms <= *bound).unwrap_or(BUCKETS - 1);
            let durations = &self.durations[index(end.state)];
            durations.buckets[bucket].fetch_add(1, Ordering::Relaxed);
            durations.sum_ms.fetch_add(end.duration_ms, Ordering::Relaxed);
        }
    }

    /// Counts what became of an offer. Only runs that one worker has as a whole come here.
    fn assignment(&self, worker: &str, state: AssignmentState) {
        let mut counts = self.assignments.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = counts.keys().any(|(name, _)| name == worker);
        let is_full = || counts.len() >= WORKERS_MAX * AssignmentState::ALL.len();
        let worker = if is_known || !is_full() { worker } else { OTHER_WORKERS };
        *counts.entry((worker.to_owned(), state)).or_default() += 1;
    }

    /// How often offers to each worker came to each state.
    pub fn assignments(&self) -> Vec<(String, AssignmentState, u64)> {
        let counts = self.assignments.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((worker, state), count)| (worker.clone(), *state, *count)).collect()
    }

    pub(crate) fn output_refused(&self) {
        self.output_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How often output came for an attempt that was over.
    pub fn outputs_refused(&self) -> u64 {
        self.output_refused.load(Ordering::Relaxed)
    }

    /// Every transition that has happened, with how often.
    pub fn transitions(&self) -> Vec<(Option<RunState>, RunState, u64)> {
        let mut seen = Vec::new();
        for (row, counts) in self.transitions.iter().enumerate() {
            for (to, count) in RunState::ALL.iter().zip(counts) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    seen.push((RunState::ALL.get(row).copied(), *to, count));
                }
            }
        }
        seen
    }

    /// How long runs took, by the state in which they ended.
    pub fn durations(&self) -> Vec<(RunState, Histogram)> {
        let ended = RunState::ALL.iter().zip(&self.durations).filter(|(state, _)| state.is_terminal());
        ended
            .map(|(state, durations)| {
                let counts = durations.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
                (*state, Histogram { counts, sum_ms: durations.sum_ms.load(Ordering::Relaxed) })
            })
            .collect()
    }
}

fn index(state: RunState) -> usize {
    RunState::ALL.iter().position(|other| *other == state).unwrap_or_default()
}
