//! When the process stops: it is asked to, by Ctrl-C or by SIGTERM from whatever runs it, or its store has become another one.

use std::time::Duration;

use interlock_engine::Engine;
use interlock_store::Restored;
use tokio::signal::unix::{SignalKind, signal};

pub async fn asked() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        // Without a handler for SIGTERM, Ctrl-C is still heard.
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

/// Waits until a server has to stop. `None`: a signal has asked for it. `Some`: its store was restored, or has lost
/// commits in a failover. What the server has in memory is stale then, and only a new process can go on.
pub async fn why(engine: &Engine) -> Option<Restored> {
    tokio::select! {
        () = asked() => None,
        restored = engine.until_restored() => Some(restored),
    }
}

/// How long a process that stops waits for its store. A commit is tried for as long as the database is away, and the
/// operator does not wait for that: what was not committed was not acknowledged either.
const STORE_MAX: Duration = Duration::from_secs(15);

/// Ends what still works on the store, and the store.
pub async fn end(engine: &Engine) {
    let ended = async {
        engine.stop().await;
        engine.store().clone().close().await;
    };
    if tokio::time::timeout(STORE_MAX, ended).await.is_err() {
        tracing::warn!(
            "the store does not answer, and is not waited for: what was not acknowledged may not be committed"
        );
    }
}
