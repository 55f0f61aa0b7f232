//! Turns the tenants' events into messages for their endpoints.

use std::time::Duration;

use crate::Engine;
use crate::error::EngineError;
use crate::webhooks::publish::publish;

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(engine: Engine) {
    loop {
        match publish_all(&engine).await {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "events could not be published; it will be tried again"),
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
        more |= publish(engine, &endpoint).await?;
    }
    Ok(more)
}
