//! Wake-ups between servers: a NOTIFY after commits, whose payload is the server that sent it. It is a hint, so it stands
//! outside the transaction, where its lock would let only one commit through at a time, and many commits share one.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use interlock_core::ids::ServerId;
use interlock_core::text::panic::message_of;
use tokio::sync::{Mutex, mpsc, watch};

use super::connect::{PgDb, Role, Target, connect};
use crate::db::Db as _;
use crate::error::DbError;
use crate::sql::hot;
use crate::value::args;

pub(crate) const CHANNEL: &str = "interlock";
const RECONNECT_AFTER: Duration = Duration::from_secs(1);
/// The least time between two wake-ups of the others.
const ANNOUNCE_EVERY: Duration = Duration::from_millis(2);

/// Tells the other servers that something was committed.
#[derive(Clone)]
pub(crate) struct Announcer(mpsc::Sender<()>);

impl Announcer {
    pub fn committed(&self) {
        // A full queue means that the news is on its way already.
        let _ = self.0.try_send(());
    }
}

/// Runs a task until it ends by itself: one that panics is started again.
async fn restarted<F>(name: &'static str, start: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    while let Err(panic) = AssertUnwindSafe(start()).catch_unwind().await {
        let panic = message_of(&*panic);
        tracing::error!(name, panic, "a task of the store panicked; it is started again");
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

/// Announces until the last announcer is dropped.
pub(crate) fn announcer(target: Target, server: ServerId) -> Announcer {
    let (sender, commits) = mpsc::channel(1);
    let commits = Mutex::new(commits);
    tokio::spawn(async move { restarted("announcer", || announce_commits(&target, server, &commits)).await });
    Announcer(sender)
}

async fn announce_commits(target: &Target, server: ServerId, commits: &Mutex<mpsc::Receiver<()>>) {
    let mut commits = commits.lock().await;
    let mut db: Option<PgDb> = None;
    let mut told = false;
    while commits.recv().await.is_some() {
        let announced = announce(&mut db, target, server).await;
        let known = std::mem::replace(&mut told, announced.is_err());
        if let Err(error) = announced {
            if !known {
                tracing::warn!(%error, "cannot wake other servers; they look by themselves");
            }
            db = None;
            tokio::time::sleep(RECONNECT_AFTER).await;
        }
        tokio::time::sleep(ANNOUNCE_EVERY).await;
    }
}

async fn announce(db: &mut Option<PgDb>, target: &Target, server: ServerId) -> Result<(), DbError> {
    let db = match db {
        Some(db) => db,
        None => db.insert(connect(target, Role::Reader, None).await?),
    };
    db.execute(&hot::NOTIFY, args![server.to_string()]).await?;
    Ok(())
}

/// Listens until the last receiver is dropped.
pub(crate) fn listen(target: Target, server: ServerId) -> watch::Receiver<u64> {
    let (wake, wakes) = watch::channel(0);
    // The sender lives as long as someone receives, whatever the listener meets: that it is there is what says that the
    // database is shared.
    tokio::spawn(async move { restarted("listener", || hear_commits(&target, server, &wake)).await });
    wakes
}

async fn hear_commits(target: &Target, server: ServerId, wake: &watch::Sender<u64>) {
    let mut told = false;
    while !wake.is_closed() {
        let (notices, mut payloads) = mpsc::unbounded_channel();
        match connect(target, Role::Reader, Some(notices)).await {
            Ok(db) if db.batch(&format!("LISTEN {CHANNEL}")).await.is_ok() => {
                // What was committed before this connection listened is unknown, so the store is read once.
                wake.send_modify(|count| *count += 1);
                if std::mem::take(&mut told) {
                    // At the level of its beginning, so that a log that has one has both.
                    tracing::warn!("other servers are heard again");
                }
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
            Err(error) if told => tracing::debug!(%error, "still cannot listen for other servers"),
            Err(error) => {
                told = true;
                tracing::warn!(%error, "cannot listen for other servers; it is tried again until it can");
            }
        }
        tokio::time::sleep(RECONNECT_AFTER).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_started_again_until_it_ends_by_itself() {
        let starts = AtomicU32::new(0);
        let (wake, wakes) = watch::channel(0);
        let listening = restarted("listener", || async {
            assert!(starts.fetch_add(1, Ordering::Relaxed) >= 2, "a panic on a notice");
            wake.send_modify(|count| *count += 1);
        });
        listening.await;
        assert_eq!((starts.into_inner(), *wakes.borrow()), (3, 1));
        assert!(wakes.has_changed().is_ok(), "the database counts as shared all the while");
    }
}
