//! Reads on SQLite: a pool of connections on the blocking pool, or the one connection of a database in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::memory::Memory;
use super::{SqliteDb, file};
use crate::error::{DbError, OpenError, ReadError};
use crate::options::Faults;

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
}

impl Pool {
    pub fn new(path: PathBuf, readers: usize) -> Self {
        Self { path, idle: Mutex::default(), permits: Semaphore::new(readers.max(1)), connect: file::connect }
    }

    /// Beside a server that has the file: nothing of it is ever written.
    pub fn to_read(path: PathBuf, readers: usize) -> Self {
        Self { connect: file::connect_to_read, ..Self::new(path, readers) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn with<T>(&self, read: impl FnOnce(&SqliteDb<'_>) -> Result<T, DbError>) -> Result<T, ReadError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => (self.connect)(&self.path).map_err(|error| ReadError::Unavailable(error.to_string()))?,
        };
        let result = in_snapshot(&connection, read);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
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
                let pool = Arc::clone(pool);
                let task = tokio::task::spawn_blocking(move || pool.with(read));
                task.await.map_err(|error| ReadError::Unavailable(error.to_string()))?
            }
            Self::Memory(memory) => Ok(locked(memory, read)?),
            Self::Inline(memory, faults) => {
                faults.before_read().await;
                Ok(locked(memory, read)?)
            }
        }
    }
}

fn locked<T>(memory: &Memory, read: impl FnOnce(&SqliteDb<'_>) -> Result<T, DbError>) -> Result<T, DbError> {
    let connection = memory.connection.lock().unwrap_or_else(PoisonError::into_inner);
    read(&SqliteDb(&connection))
}
