//! The scheduler: sleeps until the next slot of any schedule, deals with it, and looks again at least every few
//! seconds for what other servers have made.

use std::time::Duration;

use tokio::sync::Notify;

use crate::Engine;
use crate::error::EngineError;
use crate::schedules::{fire, follow};
use crate::set_aside::ItemOutcome;

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
    engine.noted("schedules of workflow files", follow::all(&engine).await);
    loop {
        let pause = engine.noted("schedules", fire_due(&engine).await).unwrap_or(LOOK_SOON);
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.schedules.0.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Deals with all that are due and answers how long to sleep.
async fn fire_due(engine: &Engine) -> Result<Duration, EngineError> {
    let now = engine.now();
    let batch_max = DUE_BATCH_MAX + engine.0.set_aside.count();
    let due = engine.0.store.due_schedules(now, batch_max).await?;
    let full = due.len() >= batch_max;
    let fired = due.into_iter().map(|row| engine.one_of_many(row.tenant, row.id, fire::fire(engine, row)));
    let mut fires = 0;
    for worked in futures::future::join_all(fired).await {
        fires += usize::from(worked? == ItemOutcome::Done);
    }
    if full && fires > 0 {
        return Ok(Duration::ZERO);
    }
    // What is due and still there is set aside: it must not keep the loop awake.
    let next = engine.0.store.next_schedule(now).await?;
    Ok(next.map_or(LOOK_EVERY, |next| next.since(engine.now()).as_duration().min(LOOK_EVERY)))
}
