//! The engine's clock follows the database's, so that several servers agree on what is due.

use std::time::Duration;

use interlock_core::time::Timestamp;
use interlock_store::{ReadError, Store};

use crate::options::EngineOptions;
use crate::{Engine, OpenEngineError};

const SYNC_EVERY: Duration = Duration::from_secs(30);
/// Smaller differences are noise of the measurement.
const TOLERATED_MS: i64 = 20;
/// Measurements of which the quickest counts. The first may have to connect, which takes far longer one way than the
/// other and would be taken for a difference.
const MEASUREMENTS: usize = 4;

const _: () = assert!(2 * TOLERATED_MS < interlock_core::limits::CLOCK_SKEW_TOLERATED.0 as i64);

/// Measures before anything is decided; a clock that is far off is refused, since something is wrong with it.
pub(crate) async fn at_start(store: &Store, options: &EngineOptions) -> Result<(), OpenEngineError> {
    if let Some(skew_ms) = difference(store, options).await? {
        if skew_ms.unsigned_abs() > options.clock_skew_max.0 {
            return Err(OpenEngineError::ClockSkew { skew_ms, max_ms: options.clock_skew_max.0 });
        }
        if skew_ms.abs() > TOLERATED_MS {
            options.clock.adjust(skew_ms);
        }
    }
    // A clock that was set back meanwhile goes on from the last commit, slower, until the time has caught up.
    options.clock.not_before(store.last_commit_at().await?);
    Ok(())
}

/// How far the database's clock is ahead of this server's; `None` where the store has no clock of its own.
async fn difference(store: &Store, options: &EngineOptions) -> Result<Option<i64>, ReadError> {
    let mut quickest: Option<(i64, i64)> = None;
    for _ in 0..MEASUREMENTS {
        // Not against what the clock shows: while it slows down, the same difference would be corrected again and again.
        let before = options.clock.true_time();
        let Some(theirs) = store.server_time().await? else { return Ok(None) };
        let after = options.clock.true_time();
        let middle = Timestamp(before.0.midpoint(after.0));
        let measured = (after.0 - before.0, theirs.0 - middle.0);
        if quickest.is_none_or(|(took, _)| measured.0 < took) {
            quickest = Some(measured);
        }
    }
    Ok(quickest.map(|(_, difference)| difference))
}

pub(crate) async fn run(engine: Engine) {
    loop {
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(SYNC_EVERY) => {}
        }
        match engine.noted("clock_sync", difference(&engine.0.store, &engine.0.options).await) {
            Some(Some(skew_ms)) if skew_ms.abs() > TOLERATED_MS => {
                tracing::info!(skew_ms, "the clock follows the database's");
                engine.0.options.clock.adjust(skew_ms);
            }
            Some(None) => return,
            Some(Some(_)) | None => {}
        }
    }
}
