//! The scheduler: sleeps until the next slot of any schedule, deals with it, and looks again at least every few
//! seconds for what other servers have made.

use std::time::Duration;

use interlock_store::ReadError;
use tokio::sync::Notify;

use crate::Engine;
use crate::schedules::{fire, follow};

const DUE_BATCH_MAX: usize = 64;
const LOOK_EVERY: Duration = Duration::from_secs(5);
const LOOK_SOON: Duration = Duration::from_millis(250);

/// Wakes the scheduler when a schedule was made or changed.
#[derive(Default)]
pub struct Bell(Notify);

impl Bell {
    pub(crate) fn look(&self) {
        self.0.notify_one();
    }
}

pub(crate) async fn run(engine: Engine) {
    if let Err(error) = follow::all(&engine).await {
        tracing::warn!(%error, "the schedules of workflow files could not be brought up to date");
    }
    loop {
        let pause = match fire_due(&engine).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!(%error, "schedules could not be read; they will be tried again");
                LOOK_EVERY
            }
        };
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.schedules.0.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Deals with all that are due and answers how long to sleep.
async fn fire_due(engine: &Engine) -> Result<Duration, ReadError> {
    let due = engine.0.store.due_schedules(engine.now(), DUE_BATCH_MAX).await?;
    let full = due.len() == DUE_BATCH_MAX;
    let mut stuck = false;
    let fired = futures::future::join_all(due.into_iter().map(|row| fire::fire(engine, row))).await;
    for result in fired {
        if let Err(error) = result {
            stuck = true;
            tracing::warn!(%error, "a schedule could not be dealt with; it will be tried again");
        }
    }
    if stuck {
        return Ok(LOOK_SOON);
    }
    if full {
        return Ok(Duration::ZERO);
    }
    let next = engine.0.store.next_schedule().await?;
    Ok(next.map_or(LOOK_EVERY, |next| next.since(engine.now()).as_duration().min(LOOK_EVERY)))
}
