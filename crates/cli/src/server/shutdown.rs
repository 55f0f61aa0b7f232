//! When the process stops: it is asked to, by Ctrl-C or by SIGTERM from whatever runs it, or its store has become another one.

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

/// Waits until a server has to stop. Where nobody has asked, its store was restored, or has lost commits in a failover: what
/// the server knows is of another past, and only a new process can go on.
pub async fn why(engine: &Engine) -> Option<Restored> {
    tokio::select! {
        () = asked() => None,
        restored = engine.until_restored() => Some(restored),
    }
}
