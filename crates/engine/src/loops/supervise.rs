//! Keeps the loops alive: one that panics is started again, after a pause that grows while it goes on panicking. What
//! happened is counted, and told by `/readyz` and the metrics until the loop has been well for a while.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use interlock_core::text::panic::message_of;
use interlock_core::time::{Millis, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::Engine;
use crate::clock::Clock;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A loop that has run for so long without a panic is well again.
const WELL_AFTER: Millis = Millis::from_secs(120);

/// How one loop is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopHealth {
    pub name: &'static str,
    /// How often it has panicked since the server started.
    pub panics: u64,
    /// It runs, and has not panicked for a while.
    pub well: bool,
}

pub struct Loops {
    clock: Clock,
    states: Mutex<BTreeMap<&'static str, LoopState>>,
}

#[derive(Default)]
struct LoopState {
    panics: u64,
    panicked_at: Option<Timestamp>,
}

impl Loops {
    pub fn new(clock: Clock) -> Self {
        Self { clock, states: Mutex::default() }
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<&'static str, LoopState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn health(&self) -> Vec<LoopHealth> {
        let now = self.clock.now();
        let well = |state: &LoopState| state.panicked_at.is_none_or(|at| now.since(at) > WELL_AFTER);
        let states = self.states();
        states.iter().map(|(name, state)| LoopHealth { name, panics: state.panics, well: well(state) }).collect()
    }

    /// Runs a loop until it ends by itself or the engine stops, however often it panics.
    pub(crate) async fn supervise<F>(&self, name: &'static str, stopping: &CancellationToken, start: impl Fn() -> F)
    where
        F: Future<Output = ()>,
    {
        self.states().entry(name).or_default();
        let mut pause = FIRST_PAUSE;
        loop {
            let started = self.clock.now();
            let Err(panic) = AssertUnwindSafe(start()).catch_unwind().await else { return };
            if self.clock.now().since(started) > WELL_AFTER {
                pause = FIRST_PAUSE;
            }
            let panics = {
                let mut states = self.states();
                let state = states.entry(name).or_default();
                (state.panics, state.panicked_at) = (state.panics + 1, Some(self.clock.now()));
                state.panics
            };
            let panic = message_of(&*panic);
            tracing::error!(name, panic, panics, again_in = ?pause, "a loop panicked; it is started again");
            if stopping.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

impl Engine {
    /// Runs a loop of whoever holds the engine as its own are run: started again after a panic, told by `/readyz`. It ends
    /// by itself, and is not waited for.
    pub fn supervise<F>(&self, name: &'static str, start: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let engine = self.clone();
        tokio::spawn(async move { engine.0.loops.supervise(name, &engine.0.stopping, start).await });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn loops() -> Loops {
        Loops::new(Clock::starting_at(Timestamp(1_720_000_000_000)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_is_started_again_and_reported() {
        let (loops, stopping, starts) = (loops(), CancellationToken::new(), AtomicU32::new(0));
        let begun = tokio::time::Instant::now();
        loops
            .supervise("timers", &stopping, || async {
                assert!(starts.fetch_add(1, Ordering::Relaxed) >= 3, "a panic on a row");
            })
            .await;
        assert_eq!(starts.load(Ordering::Relaxed), 4);
        assert_eq!(begun.elapsed(), Duration::from_secs(1 + 2 + 4), "each time later");
        assert_eq!(loops.health(), [LoopHealth { name: "timers", panics: 3, well: false }]);
        tokio::time::sleep(Duration::from_secs(121)).await;
        assert_eq!(loops.health(), [LoopHealth { name: "timers", panics: 3, well: true }]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_does_not_wait_for_a_loop_that_keeps_panicking() {
        let (loops, stopping) = (loops(), CancellationToken::new());
        let supervised = loops.supervise("scan", &stopping, || async { panic!("again") });
        let stop = async {
            tokio::time::sleep(Duration::from_secs(200)).await;
            stopping.cancel();
        };
        tokio::time::timeout(Duration::from_secs(201), futures::future::join(supervised, stop)).await.unwrap();
    }
}
