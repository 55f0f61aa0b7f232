//! Timers: waits that run out, approvals' clocks, runs' deadlines. The loop sleeps until the next one; a million
//! waiting runs cost nothing while they wait.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use interlock_core::change::Context;
use interlock_core::decide::Command;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Timestamp;
use interlock_store::ReadError;
use tokio::sync::Notify;

use crate::Engine;
use crate::error::EngineError;

const DUE_BATCH_MAX: usize = 256;
/// How long the loop sleeps at most: other servers' timers are found by then at the latest.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_SOON: Duration = Duration::from_millis(50);

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
        let pause = match fire(&engine).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!(%error, "timers could not be read; they will be tried again");
                LOOK_EVERY
            }
        };
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.timers.earlier.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Fires all that is due and answers how long to sleep.
async fn fire(engine: &Engine) -> Result<Duration, ReadError> {
    loop {
        let due = engine.0.store.due_runs(engine.now(), DUE_BATCH_MAX).await?;
        let full = due.len() == DUE_BATCH_MAX;
        let mut stuck = false;
        let fired = futures::future::join_all(due.into_iter().map(|(tenant, run)| tick(engine, tenant, run))).await;
        for result in fired {
            if let Err(error) = result {
                stuck = true;
                tracing::warn!(%error, "a timer could not fire; it will be tried again");
            }
        }
        if stuck {
            return Ok(LOOK_SOON);
        }
        if full {
            continue;
        }
        engine.0.timers.next.store(i64::MAX, Ordering::Relaxed);
        let Some(next) = engine.0.store.next_wake().await? else { return Ok(LOOK_EVERY) };
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
