//! Whether a database is in service. Every server has a share of one lock in it, from its start to its end, and a restore
//! takes the whole lock. PostgreSQL takes the lock from a connection that is gone. So it tells who is at work now, which
//! rows cannot: those of a backup speak of servers that were at work when it was made.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::connect::{KEPT_ALIVE, PgDb, Role, Target, connect};
use crate::db::Db as _;
use crate::error::{DbError, OpenError};
use crate::meta::sql;
use crate::sql::Stmt;
use crate::value::{Row, args};

/// The key of the advisory lock.
const SERVICE_LOCK: i64 = 0x0049_4c53_4552_5645;
/// How often a server asks whether its connection, and with it its share, is still there.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A database that does not answer in this time is away, or the connection was cut without a word.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// Whoever ends does not wait longer for a database that does not answer.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// How long a restore leaves the lock free for servers that are at work without their share: their connection was ended, and
/// they ask for it every second.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(3);

/// What the connections are called in the database.
const SERVER: &str = "interlock server";
const RESTORE: &str = "interlock db restore";
/// The functions that give back the whole lock, and a share of it.
const UNLOCK_ALONE: &str = "pg_advisory_unlock";
const UNLOCK_SHARE: &str = "pg_advisory_unlock_shared";

/// A server's share of the lock, until it leaves or this is dropped.
pub(crate) struct InService {
    leave: oneshot::Sender<()>,
    holding: JoinHandle<()>,
}

impl InService {
    /// Waits until the share is given back.
    pub async fn leave(self) {
        let Self { leave, holding } = self;
        // Where the task is over there is nothing to give back.
        let _ = leave.send(());
        let _ = holding.await;
    }
}

/// Takes a share, and keeps it: a connection that is lost is made anew.
pub(crate) async fn enter(target: &Target) -> Result<InService, OpenError> {
    let db = connected(target, SERVER).await.map_err(|error| OpenError::Connect { what: error.to_string() })?;
    if !taken(&db, &sql::SERVICE_SHARE).await? {
        let holders = holders(&db).await?;
        return Err(OpenError::BeingRestored { by: told(&holders) });
    }
    let (leave, left) = oneshot::channel();
    let holding = tokio::spawn(hold(target.clone(), db, left));
    Ok(InService { leave, holding })
}

/// Holds the share until the server leaves, or its store is gone.
async fn hold(target: Target, db: PgDb, left: oneshot::Receiver<()>) {
    let mut held = Some(db);
    tokio::select! {
        _ = left => {}
        () = keep(&target, &mut held) => {}
    }
    if let Some(db) = held {
        unlock(&db, UNLOCK_SHARE).await;
    }
}

async fn keep(target: &Target, held: &mut Option<PgDb>) {
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        let stands = match held {
            Some(db) => stands(db).await,
            None => false,
        };
        if !stands {
            // First the old one goes: two shares of one server would be told as two servers.
            *held = None;
            *held = retaken(target).await;
        }
    }
}

/// A connection that nobody speaks on may be long gone, with its locks, and look as if it stood.
async fn stands(db: &PgDb) -> bool {
    tokio::time::timeout(ANSWERS_WITHIN, db.batch("SELECT 1")).await.is_ok_and(|answer| answer.is_ok())
}

/// None while the database is away, and while it is being restored: the server finds out about that by the epoch.
async fn retaken(target: &Target) -> Option<PgDb> {
    let db = connected(target, SERVER).await.ok()?;
    taken(&db, &sql::SERVICE_SHARE).await.is_ok_and(|taken| taken).then_some(db)
}

/// The whole lock, as long as this is kept.
pub(crate) struct OutOfService {
    pub(super) db: PgDb,
}

/// Gives the lock back at once: else the database takes it back when it notices the end of the connection.
async fn unlock(db: &PgDb, function: &str) {
    let unlock = format!("SELECT {function}({SERVICE_LOCK})");
    let _ = tokio::time::timeout(LEAVES_WITHIN, db.batch(&unlock)).await;
}

impl OutOfService {
    /// Refused while servers are at work, and during another restore, with who that is.
    pub async fn take(target: &Target) -> Result<Self, OpenError> {
        let db = connected(target, RESTORE).await.map_err(|error| OpenError::Connect { what: error.to_string() })?;
        let mut is_taken = taken(&db, &sql::SERVICE_ALONE).await?;
        if is_taken && has_other_connections(&db).await? {
            // One of them may be of a server that has just lost its share. It cannot take it again while this has the lock,
            // and would be at work under the restore.
            unlock(&db, UNLOCK_ALONE).await;
            tokio::time::sleep(COMES_BACK_WITHIN).await;
            is_taken = taken(&db, &sql::SERVICE_ALONE).await?;
        }
        if is_taken {
            return Ok(Self { db });
        }
        let (restores, servers): (Vec<_>, Vec<_>) = holders(&db).await?.into_iter().partition(|holder| holder.alone);
        Err(if restores.is_empty() {
            OpenError::InService { servers: told(&servers) }
        } else {
            OpenError::BeingRestored { by: told(&restores) }
        })
    }

    /// Waits until the lock is given back.
    pub async fn release(self) {
        unlock(&self.db, UNLOCK_ALONE).await;
    }
}

async fn connected(target: &Target, program: &str) -> Result<PgDb, DbError> {
    let db = connect(&target.kept_alive(), Role::Reader, None).await?;
    db.batch(&format!("SET application_name = '{program}, process {}'; {KEPT_ALIVE}", std::process::id())).await?;
    Ok(db)
}

async fn taken(db: &PgDb, stmt: &'static Stmt) -> Result<bool, DbError> {
    let mut rows = db.query(stmt, args![SERVICE_LOCK]).await?;
    Ok(rows.first_mut().map(|row| row.flag("taken")).transpose()?.unwrap_or(false))
}

async fn has_other_connections(db: &PgDb) -> Result<bool, DbError> {
    let mut rows = db.query(&sql::OTHER_CONNECTIONS, vec![]).await?;
    Ok(rows.first_mut().map(|row| row.int("found")).transpose()?.unwrap_or(0) > 0)
}

/// A connection that has the lock, or a share of it.
struct LockHolder {
    /// Its process in the database.
    process: i64,
    alone: bool,
    name: Option<String>,
    address: Option<String>,
    since: Option<String>,
}

async fn holders(db: &PgDb) -> Result<Vec<LockHolder>, OpenError> {
    // As the database shows a key of 64 bits.
    let halves = args![SERVICE_LOCK >> 32, SERVICE_LOCK & 0xffff_ffff];
    let read = |mut row: Row| -> Result<LockHolder, OpenError> {
        Ok(LockHolder {
            process: row.int("pid")?,
            alone: row.flag("alone")?,
            name: row.opt_text("name")?,
            address: row.opt_text("address")?,
            since: row.opt_text("since")?,
        })
    };
    db.query(&sql::SERVICE_HOLDERS, halves).await?.into_iter().map(read).collect()
}

/// Who they are, as far as the database tells.
fn told(holders: &[LockHolder]) -> String {
    if holders.is_empty() {
        return "one that was just ending (try again)".to_owned();
    }
    let told = holders.iter().map(|holder| {
        let LockHolder { process, name, address, since, .. } = holder;
        let name = name.as_deref().filter(|name| !name.is_empty()).unwrap_or("an unnamed connection");
        let from = address.as_ref().map(|address| format!(" from {address}")).unwrap_or_default();
        let since = since.as_ref().map(|since| format!(", connected since {since} UTC")).unwrap_or_default();
        format!("{name}{from}{since} (process {process} of the database)")
    });
    told.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_at_work_is_told_as_far_as_the_database_tells() {
        let server = LockHolder {
            process: 812,
            alone: false,
            name: Some("interlock server, process 41".to_owned()),
            address: Some("10.0.0.7".to_owned()),
            since: Some("2026-11-19 06:03:11".to_owned()),
        };
        let hidden = LockHolder { process: 813, alone: false, name: None, address: None, since: None };
        assert_eq!(
            told(&[server, hidden]),
            "interlock server, process 41 from 10.0.0.7, connected since 2026-11-19 06:03:11 UTC (process 812 of the \
             database); an unnamed connection (process 813 of the database)"
        );
        assert!(told(&[]).contains("try again"));
    }
}
