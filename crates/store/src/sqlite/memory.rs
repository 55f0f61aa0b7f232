//! Databases in memory, by name. One connection each, shared by writer and readers, that outlives the stores opened
//! on it: a simulated crash drops the store and opens another on the same name.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use interlock_core::ids::ServerId;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use tokio::sync::watch;

use super::file::configure;
use crate::error::OpenError;

/// A database in memory and the stores that want to hear of each other's commits.
pub(crate) struct Memory {
    pub connection: Mutex<Connection>,
    listeners: Mutex<Vec<(ServerId, watch::Sender<u64>)>>,
}

static DATABASES: LazyLock<Mutex<HashMap<String, Arc<Memory>>>> = LazyLock::new(Mutex::default);

pub(crate) fn open(name: &str) -> Result<Arc<Memory>, OpenError> {
    let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(memory) = databases.get(name) {
        return Ok(Arc::clone(memory));
    }
    let failed = |error: rusqlite::Error| OpenError::File { path: name.to_owned(), what: error.to_string() };
    let connection = Connection::open_in_memory().map_err(failed)?;
    configure(&connection).map_err(failed)?;
    let memory = Arc::new(Memory { connection: Mutex::new(connection), listeners: Mutex::default() });
    databases.insert(name.to_owned(), Arc::clone(&memory));
    Ok(memory)
}

/// Ends a database in memory: its content is gone once the last store on it is.
pub fn forget(name: &str) {
    DATABASES.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
}

/// Makes one database in memory a copy of another, whatever it held before: a backup, or its restore.
pub fn copy(from: &str, to: &str) -> Result<(), OpenError> {
    let failed = |error: rusqlite::Error| OpenError::File { path: to.to_owned(), what: error.to_string() };
    let (from, to) = (open(from)?, open(to)?);
    let source = from.connection.lock().unwrap_or_else(PoisonError::into_inner);
    let mut target = to.connection.lock().unwrap_or_else(PoisonError::into_inner);
    let backup = Backup::new(&source, &mut target).map_err(failed)?;
    backup.step(-1).map_err(failed)?;
    Ok(())
}

/// Changes a database in memory without its stores, as an operator with a SQL shell would. Answers how many rows
/// changed.
pub fn change(name: &str, sql: &str) -> Result<usize, OpenError> {
    let failed = |error: rusqlite::Error| OpenError::File { path: name.to_owned(), what: error.to_string() };
    let memory = open(name)?;
    let connection = memory.connection.lock().unwrap_or_else(PoisonError::into_inner);
    connection.execute(sql, []).map_err(failed)
}

impl Memory {
    pub fn listen(&self, server: ServerId, wakes: watch::Sender<u64>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|(_, sender)| !sender.is_closed());
        listeners.push((server, wakes));
    }

    /// Tells the other servers that something was committed.
    pub fn committed(&self, by: ServerId) {
        for (server, wakes) in &*self.listeners.lock().unwrap_or_else(PoisonError::into_inner) {
            if *server != by {
                wakes.send_modify(|count| *count += 1);
            }
        }
    }
}
