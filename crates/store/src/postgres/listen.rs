//! Wake-ups from other servers: one NOTIFY per committed group, whose payload is the server that sent it.

use std::time::Duration;

use interlock_core::ids::ServerId;
use tokio::sync::{mpsc, watch};
use tokio_postgres::Config;

use super::connect::{Role, connect};
use crate::db::Db as _;

pub(crate) const CHANNEL: &str = "interlock";
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Listens until nobody holds the receiver.
pub(crate) fn listen(config: Config, server: ServerId) -> watch::Receiver<u64> {
    let (wake, wakes) = watch::channel(0);
    tokio::spawn(async move {
        while !wake.is_closed() {
            let (notices, mut payloads) = mpsc::unbounded_channel();
            match connect(&config, Role::Reader, Some(notices)).await {
                Ok(db) if db.batch(&format!("LISTEN {CHANNEL}")).await.is_ok() => {
                    // What was committed while nobody listened is unknown: look.
                    wake.send_modify(|count| *count += 1);
                    loop {
                        tokio::select! {
                            payload = payloads.recv() => match payload {
                                Some(payload) if payload == server.to_string() => {}
                                Some(_) => wake.send_modify(|count| *count += 1),
                                None => break,
                            },
                            () = wake.closed() => return,
                        }
                    }
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "cannot listen for other servers"),
            }
            tokio::time::sleep(RECONNECT_AFTER).await;
        }
    });
    wakes
}
