//! Reads on SQLite: a pool of connections on the blocking pool, or the one connection of a database in memory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::memory::Memory;
use super::{SqliteDb, file};
use crate::error::{DbError, OpenError, ReadError};
use crate::faults::Faults;

pub(crate) enum SqliteReads {
    File(Arc<Pool>),
    Memory(Arc<Memory>),
    /// In place, without threads.
    Inline(Arc<Memory>, Arc<dyn Faults>),
}

/// Idle connections; more are opened while all are busy, up to the permits.
pub(crate) struct Pool {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    connect: fn(&Path) -> Result<Connection, OpenError>,
    timeout: Duration,
}

/// How many steps of SQLite's machine lie between two looks at whether a read should end: well below a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

impl Pool {
    pub fn new(path: PathBuf, readers: usize, timeout: Duration) -> Self {
        let permits = Semaphore::new(readers.max(1));
        Self { path, idle: Mutex::default(), permits, connect: file::connect_beside, timeout }
    }

    /// Beside a server that has the file: nothing of it is ever written.
    pub fn to_read(path: PathBuf, readers: usize, timeout: Duration) -> Self {
        Self { connect: file::connect_to_read, ..Self::new(path, readers, timeout) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads until `late` is set: a read whose caller has given up must not hold its snapshot, behind which the log
    /// grows.
    fn with<T>(
        &self,
        late: Arc<AtomicBool>,
        read: impl FnOnce(&SqliteDb<'_>) -> Result<T, DbError>,
    ) -> Result<T, ReadError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => (self.connect)(&self.path).map_err(|error| ReadError::Unavailable(error.to_string()))?,
        };
        connection
            .progress_handler(STEPS_BETWEEN_LOOKS, Some(move || late.load(Ordering::Relaxed)))
            .map_err(DbError::from)?;
        let result = in_snapshot(&connection, read);
        connection.progress_handler(0, None::<fn() -> bool>).map_err(DbError::from)?;
        // One that is still inside its transaction is of no more use.
        if connection.is_autocommit() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        Ok(result?)
    }
}

/// All statements of one read see the same commit.
fn in_snapshot<T>(
    connection: &Connection,
    read: impl FnOnce(&SqliteDb<'_>) -> Result<T, DbError>,
) -> Result<T, DbError> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let result = read(&SqliteDb(connection));
    connection.prepare_cached("COMMIT")?.execute([])?;
    result
}

impl SqliteReads {
    pub async fn with<T, F>(&self, read: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce(&SqliteDb<'_>) -> Result<T, DbError> + Send + 'static,
    {
        match self {
            Self::File(pool) => {
                let _permit = pool.permits.acquire().await.map_err(|_| ReadError::Closed)?;
                let late = Arc::new(AtomicBool::new(false));
                let task = tokio::task::spawn_blocking({
                    let (pool, late) = (Arc::clone(pool), Arc::clone(&late));
                    move || pool.with(late, read)
                });
                if let Ok(answer) = tokio::time::timeout(pool.timeout, task).await {
                    return answer.map_err(|error| ReadError::Unavailable(error.to_string()))?;
                }
                late.store(true, Ordering::Relaxed);
                Err(ReadError::Unavailable(format!("no answer within {:?}", pool.timeout)))
            }
            Self::Memory(memory) => Ok(locked(memory, read)?),
            Self::Inline(memory, faults) => {
                faults.before_read().await;
                if faults.fails_reads() {
                    return Err(ReadError::Unavailable("fault injected".into()));
                }
                Ok(locked(memory, read)?)
            }
        }
    }
}

fn locked<T>(memory: &Memory, read: impl FnOnce(&SqliteDb<'_>) -> Result<T, DbError>) -> Result<T, DbError> {
    let connection = memory.connection.lock().unwrap_or_else(PoisonError::into_inner);
    read(&SqliteDb(&connection))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read that would never end ends with its time, and its connection serves the next one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_read_ends_with_its_time() {
        let path = std::env::temp_dir().join(format!("interlock-slow-read-{}.db", std::process::id()));
        // Readers make no file.
        drop(file::connect(&path).unwrap());
        let pool = Arc::new(Pool::new(path.clone(), 1, Duration::from_millis(50)));
        let reads = SqliteReads::File(Arc::clone(&pool));
        let (ended, when_ended) = tokio::sync::oneshot::channel();
        let endless = reads.with(move |db| {
            let sql = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
            let result = db.0.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(DbError::from);
            let _ = ended.send(result.is_err());
            result
        });
        assert!(matches!(endless.await, Err(ReadError::Unavailable(_))));
        assert!(when_ended.await.unwrap(), "it was stopped, not only left behind");
        let one = reads.with(|db| Ok(db.0.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))?));
        assert_eq!(one.await.unwrap(), 1);
        drop((reads, pool));
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
    }
}
