//! Numbers about runs since this engine was opened, for metrics. Counting costs an addition.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use interlock_core::ids::{ReceiptId, TenantId};
use interlock_core::plan::retry::COMMAND_NOT_PERMITTED;
use interlock_core::plan::{StepSpec, Work};
use interlock_core::run::change::{ChangeSet, SideWrite};
use interlock_core::run::{Run, Step};
use interlock_core::state::{ApprovalState, AssignmentState, RunState, StepKind, StepState};
use interlock_core::work::AttemptRef;
use interlock_core::work::credential::CredentialUsed;
use interlock_core::work::fault::{SANDBOX_NOT_ATTESTED, SANDBOX_REFUSED};

const STATES: usize = RunState::ALL.len();
/// Upper bounds of run durations, in milliseconds; longer ones fall behind the last.
pub const DURATION_BOUNDS_MS: [u64; 10] = [10, 50, 250, 1_000, 5_000, 30_000, 120_000, 600_000, 3_600_000, 86_400_000];
const BUCKETS: usize = DURATION_BOUNDS_MS.len() + 1;

#[derive(Default)]
pub struct Counters {
    /// Whether runs are told apart by tenant; if not, the tenant's label is empty.
    by_tenant: bool,
    /// By tenant: from (the last row: from nothing) and to.
    transitions: Labelled<1, [[AtomicU64; STATES]; STATES + 1]>,
    /// By workflow and tenant: for each state in which a run may end.
    durations: Labelled<2, [Durations; STATES]>,
    /// Batches of output that came for an attempt that was over.
    output_refused: AtomicU64,
    /// Results that were reported for attempts that were over, and the last of these attempts.
    late_reports: AtomicU64,
    late_attempts: Mutex<VecDeque<(AttemptRef, Option<ReceiptId>)>>,
    /// Slots of schedules that were started, those that had been before, and those that failed.
    slots: [AtomicU64; 3],
    /// What became of offers of runs, by worker.
    assignments: Mutex<BTreeMap<(String, AssignmentState), u64>>,
    /// How long attempts took, by environment and what was carried out.
    attempts: Labelled<2>,
    /// How attempts ended, by the same and how.
    attempt_results: Labelled<3, AtomicU64>,
    /// How long people were waited for, by environment.
    approval_waits: Labelled<1>,
    /// How long credentials took to fetch, by provider.
    fetches: Labelled<1>,
    /// Commands that a sandbox or the rules for commands refused, by profile.
    violations: Mutex<BTreeMap<String, u64>>,
}

/// Sets of labels with their numbers, by the hash of the labels.
type LabelledRows<const N: usize, V> = HashMap<u64, Vec<([String; N], V)>>;

/// Numbers by labels that workflows and workers choose: so many sets of labels, and one for all others. A set is found by
/// its hash, because every change of a run looks for some, and only a new set locks others out.
struct Labelled<const N: usize, V = Durations> {
    hasher: RandomState,
    /// By the hash of the labels: nearly always one set, and never one that is taken for another.
    rows: RwLock<LabelledRows<N, V>>,
}

/// Attempts with late reports that are remembered, so that a report which is repeated is noted once.
const LATE_ATTEMPTS_MAX: usize = 1_000;

/// How many sets of labels are told apart.
const LABELLED_MAX: usize = 200;
/// The label of those that are counted together.
pub const OTHER: &str = "other";

impl<const N: usize, V> Default for Labelled<N, V> {
    fn default() -> Self {
        Self { hasher: RandomState::default(), rows: RwLock::default() }
    }
}

impl<const N: usize, V: Default> Labelled<N, V> {
    fn note(&self, labels: [&str; N], add: impl Fn(&V)) {
        let known = |rows: &LabelledRows<N, V>, labels: [&str; N]| {
            let alike = rows.get(&self.hasher.hash_one(labels));
            let row = alike.and_then(|alike| alike.iter().find(|(known, _)| *known == labels));
            row.map(|(_, value)| add(value)).is_some()
        };
        let is_counted = {
            let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
            // With the last set of labels, or behind it, stands the row of all others.
            known(&rows, labels) || (rows.len() >= LABELLED_MAX && known(&rows, [OTHER; N]))
        };
        if is_counted {
            return;
        }
        let mut rows = self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let labels = if rows.len() < LABELLED_MAX { labels } else { [OTHER; N] };
        // Another thread may have added the row in between.
        if !known(&rows, labels) {
            let value = V::default();
            add(&value);
            rows.entry(self.hasher.hash_one(labels)).or_default().push((labels.map(str::to_owned), value));
        }
    }

    /// All of them, by their labels.
    fn all<T>(&self, read: impl Fn(&V) -> T) -> Vec<([String; N], T)> {
        let rows = self.rows.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = rows.values().flatten().map(|(labels, value)| (labels.clone(), read(value))).collect();
        drop(rows);
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    }
}

impl<const N: usize> Labelled<N> {
    fn observe(&self, labels: [&str; N], ms: u64) {
        self.note(labels, |durations| durations.observe(ms));
    }

    fn histograms(&self) -> Vec<([String; N], Histogram)> {
        self.all(Durations::histogram)
    }
}

/// Workers that are counted by name; what others do is counted together.
const WORKERS_MAX: usize = 100;

/// How long things of one kind took.
#[derive(Default)]
struct Durations {
    buckets: [AtomicU64; BUCKETS],
    sum_ms: AtomicU64,
}

impl Durations {
    fn observe(&self, ms: u64) {
        let bucket = DURATION_BOUNDS_MS.iter().position(|bound| ms <= *bound).unwrap_or(BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn histogram(&self) -> Histogram {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        Histogram { counts, sum_ms: self.sum_ms.load(Ordering::Relaxed) }
    }
}

/// A histogram as it stands: counts for each bound and behind the last, and the sum of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    pub counts: Vec<u64>,
    pub sum_ms: u64,
}

/// How often runs went from one state (none before the first) to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionCount {
    /// Empty where tenants are not told apart.
    pub tenant: String,
    pub from: Option<RunState>,
    pub to: RunState,
    pub count: u64,
}

impl Counters {
    /// Counters that tell runs apart by tenant, or do not.
    pub(crate) fn new(by_tenant: bool) -> Self {
        Self { by_tenant, ..Self::default() }
    }

    /// Whether runs are told apart by tenant.
    pub const fn by_tenant(&self) -> bool {
        self.by_tenant
    }

    fn tenant(&self, tenant: TenantId) -> String {
        if self.by_tenant { tenant.to_string() } else { String::new() }
    }

    /// The labels of a workflow's runs. One that is called like those that are counted together is one of them where no tenant tells it
    /// apart.
    fn kind<'a>(&self, workflow: &'a str, tenant: &'a str) -> [&'a str; 2] {
        let is_other = workflow == OTHER && !self.by_tenant;
        [workflow, if is_other { OTHER } else { tenant }]
    }

    /// A change that was committed; `run` is as it is now.
    pub(crate) fn record(&self, run: &Run, from: Option<RunState>, change: &ChangeSet) {
        let tenant = self.tenant(run.tenant);
        if from != Some(run.state) {
            let (from, to) = (from.map_or(STATES, index), index(run.state));
            self.transitions.note([tenant.as_str()], |counts| {
                counts[from][to].fetch_add(1, Ordering::Relaxed);
            });
        }
        for write in &change.side {
            if let SideWrite::PutAssignment(record) = write {
                self.assignment(&record.worker, record.state);
            }
        }
        let kind = self.kind(&run.plan.workflow, &tenant);
        if let Some(end) = &change.end {
            self.durations.note(kind, |ended| ended[index(end.state)].observe(end.duration_ms));
        } else if from.is_none() {
            // From its first run on, so that the first end counts as a change.
            self.durations.note(kind, |_| {});
        }
    }

    /// What a committed change does to the steps of a run; `run` is as it was before.
    pub(crate) fn steps(&self, run: &Run, change: &ChangeSet) {
        let environment = run.plan.environment();
        for (position, step) in &change.delta.steps {
            let Some(before) = run.steps.get(*position as usize) else { continue };
            let ended = before.state() == StepState::Running
                && (step.state() != StepState::Running || step.attempt != before.attempt);
            if let Some(claimed_at) = before.claimed_at.filter(|_| ended) {
                let took = change.at.since(claimed_at).0;
                let carried_out = carried_out(run.spec(*position));
                self.attempts.observe([environment, carried_out], took);
                self.attempt_results.note([environment, carried_out, result(before, step)], |count| {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
            // An error stays on a step that is given back until its next attempt ends: it counts when it comes.
            let is_new = before.state() == StepState::Running || before.last_error != step.last_error;
            if is_new && before.state() != step.state() && is_refused_command(run.spec(*position), step) {
                self.violation(run);
            }
        }
        for write in &change.side {
            if let SideWrite::PutApproval { approval, .. } = write
                && approval.state != ApprovalState::Requested
            {
                self.approval_waits.observe([environment], change.at.since(approval.requested_at).0);
            }
        }
    }

    /// A run that was made: what it begins with may have been refused at once.
    pub(crate) fn started(&self, run: &Run) {
        let refused = |(position, step): (u32, &Step)| {
            step.state() == StepState::Failed && is_refused_command(run.spec(position), step)
        };
        if (0..).zip(&run.steps).any(refused) {
            self.violation(run);
        }
    }

    fn violation(&self, run: &Run) {
        let profile = run.plan.rules.profile.clone().unwrap_or_default();
        let mut counts = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(profile).or_default() += 1;
    }

    /// Counts how long the credentials of an attempt took to fetch.
    pub(crate) fn fetched(&self, credentials: &[CredentialUsed]) {
        for used in credentials {
            if let Some(ms) = used.fetch_ms {
                self.fetches.observe([used.provider()], ms);
            }
        }
    }

    /// How long attempts took, by environment and what was carried out: a connector's operation, or the kind of step.
    pub fn attempts(&self) -> Vec<([String; 2], Histogram)> {
        self.attempts.histograms()
    }

    /// How many attempts ended how, by environment, what was carried out, and the result.
    pub fn attempt_results(&self) -> Vec<([String; 3], u64)> {
        self.attempt_results.all(|count| count.load(Ordering::Relaxed))
    }

    /// How long people were waited for, by environment.
    pub fn approval_waits(&self) -> Vec<([String; 1], Histogram)> {
        self.approval_waits.histograms()
    }

    /// How long credentials took to fetch, by provider, as workers say.
    pub fn fetches(&self) -> Vec<([String; 1], Histogram)> {
        self.fetches.histograms()
    }

    /// How often a sandbox or the rules for commands have refused one, by profile.
    pub fn violations(&self) -> Vec<(String, u64)> {
        let counts = self.violations.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(profile, count)| (profile.clone(), *count)).collect()
    }

    /// Counts what became of an offer. Only runs that one worker has as a whole come here.
    fn assignment(&self, worker: &str, state: AssignmentState) {
        let mut counts = self.assignments.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = counts.keys().any(|(name, _)| name == worker);
        let is_full = || counts.len() >= WORKERS_MAX * AssignmentState::ALL.len();
        let worker = if is_known || !is_full() { worker } else { OTHER };
        *counts.entry((worker.to_owned(), state)).or_default() += 1;
    }

    /// How often offers to each worker came to each state.
    pub fn assignments(&self) -> Vec<(String, AssignmentState, u64)> {
        let counts = self.assignments.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((worker, state), count)| (worker.clone(), *state, *count)).collect()
    }

    /// Counts the start of a schedule's slot.
    pub(crate) fn slot(&self, fresh: bool) {
        self.slots[usize::from(!fresh)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a slot whose run could not be started.
    pub(crate) fn slot_failed(&self) {
        self.slots[2].fetch_add(1, Ordering::Relaxed);
    }

    /// How many slots of schedules were started, how many had been before, and how many failed.
    pub fn slots(&self) -> [u64; 3] {
        self.slots.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn output_refused(&self) {
        self.output_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How often output came for an attempt that was over.
    pub fn outputs_refused(&self) -> u64 {
        self.output_refused.load(Ordering::Relaxed)
    }

    /// Counts a late report. Whether it is the first of the attempt, or of this effect of it, as far as is remembered.
    pub(crate) fn late_report(&self, at: AttemptRef, receipt: Option<ReceiptId>) -> bool {
        self.late_reports.fetch_add(1, Ordering::Relaxed);
        let mut known = self.late_attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&(at, receipt)) {
            return false;
        }
        if known.len() >= LATE_ATTEMPTS_MAX {
            known.pop_front();
        }
        known.push_back((at, receipt));
        true
    }

    /// How often a result was reported for an attempt that was over or reported otherwise.
    pub fn late_reports(&self) -> u64 {
        self.late_reports.load(Ordering::Relaxed)
    }

    /// Every transition that has happened, with how often.
    pub fn transitions(&self) -> Vec<TransitionCount> {
        let mut seen = Vec::new();
        let read = |rows: &[[AtomicU64; STATES]; STATES + 1]| {
            rows.each_ref().map(|counts| counts.each_ref().map(|count| count.load(Ordering::Relaxed)))
        };
        for ([tenant], rows) in self.transitions.all(read) {
            for (row, counts) in rows.iter().enumerate() {
                for (to, count) in RunState::ALL.iter().zip(counts).filter(|(_, count)| **count > 0) {
                    let (from, tenant) = (RunState::ALL.get(row).copied(), tenant.clone());
                    seen.push(TransitionCount { tenant, from, to: *to, count: *count });
                }
            }
        }
        seen
    }

    /// How long runs took, by workflow, the state in which they ended, and tenant (empty where tenants are not told apart).
    pub fn durations(&self) -> Vec<([String; 3], Histogram)> {
        let mut ended = Vec::new();
        let read = |states: &[Durations; STATES]| states.each_ref().map(Durations::histogram);
        for ([workflow, tenant], histograms) in self.durations.all(read) {
            // The row of all other workflows has no tenant either where these are not told apart.
            let tenant = if self.by_tenant { tenant } else { String::new() };
            let terminal = RunState::ALL.iter().zip(histograms).filter(|(state, _)| state.is_terminal());
            ended.extend(
                terminal.map(|(state, histogram)| {
                    ([workflow.clone(), state.as_str().to_owned(), tenant.clone()], histogram)
                }),
            );
        }
        ended
    }
}

/// A connector's operation, or the kind of step.
fn carried_out(spec: &StepSpec) -> &str {
    match &spec.work {
        Work::Connector { operation, .. } => operation,
        _ => spec.kind().as_str(),
    }
}

/// How an attempt has ended: `other` is one that was canceled, gave its step back, or waits for a signal or an approval.
fn result(before: &Step, after: &Step) -> &'static str {
    match after.state() {
        StepState::Succeeded => "succeeded",
        StepState::Failed => "failed",
        StepState::InDoubt => "in_doubt",
        _ if after.failures > before.failures => "retried",
        _ => OTHER,
    }
}

/// Errors of a command that a worker refuses: by its own rules, because its host cannot keep the profile, or because the sandbox did
/// not confine it as the profile orders. That a sandbox could not be set up just now is none of these.
const REFUSED_BY_WORKER: [&str; 3] = [COMMAND_NOT_PERMITTED, SANDBOX_REFUSED, SANDBOX_NOT_ATTESTED];
/// The error of a step that the policy denies.
const REFUSED_BY_POLICY: &str = "POLICY_DENIED";

fn is_refused_command(spec: &StepSpec, step: &Step) -> bool {
    let Some(error) = &step.last_error else { return false };
    let code = error.code.as_str();
    REFUSED_BY_WORKER.contains(&code) || (spec.kind() == StepKind::Command && code == REFUSED_BY_POLICY)
}

fn index(state: RunState) -> usize {
    RunState::ALL.iter().position(|other| *other == state).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Alerts go by the state, so that it stays right where names are counted together.
    #[test]
    fn workflows_beyond_those_that_are_told_apart_keep_the_state_of_their_end() {
        for by_tenant in [false, true] {
            let counters = Counters::new(by_tenant);
            let tenant = counters.tenant(TenantId::from_bytes([1; 16]));
            let failed = index(RunState::Failed);
            for number in 0..LABELLED_MAX + 5 {
                counters.durations.note([&format!("flow-{number}"), &tenant], |ended| ended[failed].observe(7));
            }
            let durations = counters.durations();
            let other = [OTHER, "failed", if by_tenant { OTHER } else { "" }];
            let (_, histogram) = durations.iter().find(|(labels, _)| *labels == other).expect("those beyond");
            assert_eq!((histogram.counts.iter().sum::<u64>(), histogram.sum_ms), (5, 35));
            let terminal = RunState::ALL.iter().filter(|state| state.is_terminal()).count();
            assert_eq!(durations.len(), (LABELLED_MAX + 1) * terminal);
        }
    }

    /// Where sets of labels stand by hash, their order is another one in each process.
    #[test]
    fn sets_of_labels_are_found_again_and_told_in_order() {
        let results = Labelled::<2, AtomicU64>::default();
        for (one, other) in [("b", "a"), ("a", "b"), ("", "ab"), ("b", "a"), ("ab", ""), ("b", "a")] {
            results.note([one, other], |count| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        }
        let told = results.all(|count| count.load(Ordering::Relaxed));
        let told: Vec<_> = told.iter().map(|([one, other], count)| (one.as_str(), other.as_str(), *count)).collect();
        assert_eq!(told, [("", "ab", 1), ("a", "b", 1), ("ab", "", 1), ("b", "a", 3)]);
    }

    /// A series that is there twice spoils the whole scrape.
    #[test]
    fn a_workflow_that_is_called_like_the_others_is_one_of_them() {
        let counters = Counters::new(false);
        let failed = index(RunState::Failed);
        let names = (0..LABELLED_MAX + 5).map(|number| format!("flow-{number}"));
        for name in std::iter::once(OTHER.to_owned()).chain(names) {
            counters.durations.note(counters.kind(&name, ""), |ended| ended[failed].observe(7));
        }
        let mut labels: Vec<_> = counters.durations().into_iter().map(|(labels, _)| labels).collect();
        let all = labels.len();
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), all);
    }
}
