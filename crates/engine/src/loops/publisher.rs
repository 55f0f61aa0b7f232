//! Turns the tenants' events into messages for their endpoints, and into cards about their approvals.

use std::time::Duration;

use crate::Engine;
use crate::error::EngineError;
use crate::slack::publish as cards;
use crate::webhooks::publish::publish;

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(engine: Engine) {
    loop {
        if engine.noted("publisher", publish_all(&engine).await) == Some(true) {
            continue;
        }
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.publish.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// One batch for every endpoint; answers whether there may be more.
async fn publish_all(engine: &Engine) -> Result<bool, EngineError> {
    if engine.0.stopping.is_cancelled() {
        return Ok(false);
    }
    let mut more = false;
    for endpoint in engine.0.store.fed_endpoints().await? {
        let mut queued = false;
        let work = async {
            queued = publish(engine, &endpoint).await?;
            Ok(())
        };
        engine.one_of_many(endpoint.tenant, endpoint.id, work).await?;
        more |= queued;
    }
    for slack in engine.0.store.all_slack().await? {
        let mut queued = false;
        let work = async {
            queued = cards::publish(engine, &slack).await?;
            Ok(())
        };
        engine.one_of_many(slack.tenant, slack.id, work).await?;
        more |= queued;
    }
    Ok(more)
}
