//! The sealer: gives every committed event its place in the tenant's own order, within a second of its commit. Also what
//! other servers have committed: one that died can no longer seal its own.

use std::time::Duration;

use interlock_store::Seal;

use crate::Engine;
use crate::error::EngineError;

/// Groups that one commit seals at most.
const SEAL_BATCH_MAX: usize = 512;
/// How often it looks by itself whether something was committed: a hint is lost with the caller it was made for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const _: () = assert!(LOOK_EVERY.as_millis() <= 1_000, "what was committed is sealed within a second");
/// Of so many looks one is for what other servers have left, where there may be some: their wake-ups get lost as well.
const LOOKS_FOR_OTHERS: u32 = 5;

pub(crate) async fn run(engine: Engine) {
    // What a crash left unsealed comes first.
    engine.0.wake_sealer.notify_one();
    let mut seen = 0;
    let mut idle_looks = 0;
    loop {
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = engine.0.wake_sealer.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {
                idle_looks += 1;
                let others = engine.0.store.is_shared() && idle_looks >= LOOKS_FOR_OTHERS;
                if engine.0.store.sets_committed() == seen && !others {
                    continue;
                }
            }
        }
        idle_looks = 0;
        seen = engine.0.store.sets_committed();
        // Whatever commits in this pause is sealed in the same stroke.
        tokio::time::sleep(engine.0.options.seal_every.as_duration()).await;
        loop {
            match engine.0.store.write(Seal { now: engine.now(), limit: SEAL_BATCH_MAX }).await {
                Ok(sealed) if sealed > 0 => {
                    engine.0.feed.publish_sealed();
                    engine.0.wake_audit.notify_one();
                }
                Ok(_) => {
                    engine.noted("sealer", Ok::<_, EngineError>(()));
                    break;
                }
                Err(error) => {
                    engine.noted::<()>("sealer", Err(error));
                    engine.0.wake_sealer.notify_one();
                    break;
                }
            }
        }
    }
}
