//! Timers: waits that run out, approvals' clocks, runs' deadlines. The loop sleeps until the next one; a million
//! waiting runs cost nothing while they wait.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use interlock_core::decide::Command;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::change::Context;
use interlock_core::time::Timestamp;
use tokio::sync::Notify;

use crate::Engine;
use crate::error::EngineError;
use crate::set_aside::ItemOutcome;

const DUE_BATCH_MAX: usize = 256;
/// How long the loop sleeps at most: other servers' timers are found by then at the latest.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const AFTER_FAILURE: Duration = Duration::from_millis(250);

/// Wakes the timer loop when an earlier timer than the one it sleeps for is set.
pub struct Alarm {
    next: AtomicI64,
    earlier: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { next: AtomicI64::new(i64::MAX), earlier: Notify::new() }
    }
}

impl Alarm {
    pub(crate) fn set(&self, at: Timestamp) {
        if self.next.fetch_min(at.0, Ordering::Relaxed) > at.0 {
            self.earlier.notify_one();
        }
    }

    /// Something may have changed elsewhere.
    pub(crate) fn look(&self) {
        self.earlier.notify_one();
    }
}

pub(crate) async fn run(engine: Engine) {
    loop {
        let pause = engine.noted("timers", fire(&engine).await).unwrap_or(AFTER_FAILURE);
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.timers.earlier.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Fires all that is due and answers how long to sleep.
async fn fire(engine: &Engine) -> Result<Duration, EngineError> {
    loop {
        let now = engine.now();
        let batch_max = DUE_BATCH_MAX + engine.0.set_aside.count();
        let due = engine.0.store.due_runs(now, batch_max).await?;
        let full = due.len() >= batch_max;
        let fired = due.into_iter().map(|(tenant, run)| engine.one_of_many(tenant, run, tick(engine, tenant, run)));
        let (mut fires, mut failure) = (0, None);
        for result in futures::future::join_all(fired).await {
            match result {
                Ok(worked) => fires += usize::from(worked == ItemOutcome::Done),
                Err(error) => failure = Some(error),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        if full && fires > 0 {
            continue;
        }
        engine.0.timers.next.store(i64::MAX, Ordering::Relaxed);
        // What is due and still there is set aside: it must not keep the loop awake.
        let Some(next) = engine.0.store.next_wake(now).await? else { return Ok(LOOK_EVERY) };
        engine.0.timers.next.fetch_min(next.0, Ordering::Relaxed);
        let pause = next.since(engine.now()).as_duration();
        return Ok(pause.clamp(Duration::from_millis(1), LOOK_EVERY));
    }
}

async fn tick(engine: &Engine, tenant: TenantId, run: RunId) -> Result<(), EngineError> {
    let fired =
        engine.execute(tenant, run, Context::TIMEOUT, |_| Ok(ControlFlow::Continue(Command::Tick)), |_, _| ()).await;
    match fired {
        // A signal, a vote or another server came first.
        Err(EngineError::Rejected(_)) => Ok(()),
        other => other,
    }
}
