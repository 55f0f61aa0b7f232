//! When the process is asked to stop: Ctrl-C, or SIGTERM from whatever runs it.

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
