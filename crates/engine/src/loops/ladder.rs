//! Escalates approvals that no person has decided, rung by rung: a reminder, a second channel, a page. No rung decides
//! anything.

use std::time::Duration;

use crate::Engine;
use crate::error::EngineError;
use crate::slack::publish::climb;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Approvals that are looked at with one read.
const DUE_MAX: usize = 256;

pub(crate) async fn run(engine: Engine) {
    loop {
        if engine.noted("ladder", climb_all(&engine).await) == Some(true) {
            continue;
        }
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Answers whether there may be more.
async fn climb_all(engine: &Engine) -> Result<bool, EngineError> {
    if engine.0.stopping.is_cancelled() {
        return Ok(false);
    }
    let due = engine.0.store.due_cards(engine.now(), DUE_MAX).await?;
    let full = due.len() == DUE_MAX;
    for card in due {
        engine.one_of_many(card.tenant, card.run, climb(engine, &card)).await?;
    }
    Ok(full)
}
