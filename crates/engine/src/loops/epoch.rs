//! Watches the store's epoch. It rises when a backup is brought into service; a server that lived through that holds runs
//! and attempts of another past, and must not go on.

use std::time::Duration;

use interlock_boxed::boxed;
use interlock_store::{Restored, SubmitError};

use crate::Engine;

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How soon after the store has refused for good the process is told.
const TOLD_WITHIN: Duration = Duration::from_millis(500);

impl Engine {
    /// Waits until the store commits nothing more before its process is started again, and says why: it was restored under
    /// this server, it has lost commits in a failover, or one of its lanes has panicked.
    #[boxed]
    pub async fn until_commits_end(&self) -> SubmitError {
        loop {
            if let Err(why) = self.0.store.takes_commits()
                && why.is_final()
            {
                return why;
            }
            tokio::time::sleep(TOLD_WITHIN).await;
        }
    }
}

pub(crate) async fn run(engine: Engine) {
    // A database of one server is closed while it is replaced.
    if !engine.0.store.is_shared() {
        return;
    }
    loop {
        tokio::select! {
            biased;
            () = engine.0.stopping.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        match engine.noted("epoch", engine.0.store.epoch().await) {
            Some(found) if found != engine.0.epoch => {
                let restored = Restored { had: engine.0.epoch, found };
                tracing::error!("{restored}; it commits nothing more");
                engine.0.store.refuse_restored(restored);
                engine.0.stopping.cancel();
                return;
            }
            _ => {}
        }
    }
}
