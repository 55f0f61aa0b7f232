//! Keeps the tenants' audit logs up to date, within a second of what was committed and off every commit's way.

use std::time::Duration;

use crate::Engine;
use crate::audit::append::append;
use crate::error::EngineError;
use crate::options::SEAL_EVERY;
use crate::set_aside::Item;

/// How often it looks by itself: for notes, for what a crash left, and for what other servers have sealed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What was committed is in the log within a second: sealed after the pause, or found by a look where a hint was lost.
const _: () = assert!(SEAL_EVERY.as_duration().as_millis() + LOOK_EVERY.as_millis() <= 1_000);
/// Tenants taken at a time.
const TENANTS_MAX: usize = 64;

pub(crate) async fn run(engine: Engine) {
    loop {
        engine.noted("audit", work(&engine).await);
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.wake_audit.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

async fn work(engine: &Engine) -> Result<(), EngineError> {
    let Some(key) = engine.0.options.audit_key.clone() else { return Ok(()) };
    loop {
        let mut appended = 0;
        let mut after = None;
        loop {
            let behind = engine.0.store.audit_behind(after, TENANTS_MAX).await?;
            for tenant in &behind {
                if engine.0.stopping.is_cancelled() {
                    return Ok(());
                }
                // One tenant's log that cannot be continued holds up no other's.
                let work = async {
                    appended += append(engine, &key, *tenant).await?;
                    Ok(())
                };
                engine.one_of_many(*tenant, Item::AuditLog, work).await?;
            }
            after = behind.last().copied();
            if behind.len() < TENANTS_MAX {
                break;
            }
        }
        // Nothing to do, or other servers do it.
        if appended == 0 {
            return Ok(());
        }
    }
}
