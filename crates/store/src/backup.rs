//! Backups. SQLite is copied while it runs; PostgreSQL has tools of its own.

use std::path::Path;

use interlock_boxed::boxed;

use crate::copying::{StagedCopy, unusable};
use crate::error::{DbError, OpenError, ReadError};
use crate::options::Options;
use crate::sqlite::reads::SqliteReads;
use crate::store::{Reads, Store};

/// A backup that has not got its name yet, so that what belongs to it can be put beside it first. Dropped without
/// [`Self::place`] it goes, with everything beside it whose name begins with its own.
pub struct StagedBackup(StagedCopy);

impl StagedBackup {
    /// Copies a SQLite store next to a file that is not there yet, consistent at one instant, also while a server has it
    /// open.
    #[boxed]
    pub async fn make(from: &Path, to: &Path) -> Result<Self, OpenError> {
        if !from.is_file() {
            return Err(unusable(from, "there is no such store".to_owned()));
        }
        if to.exists() {
            return Err(unusable(to, "exists already; name a file that does not".to_owned()));
        }
        let (from, to) = (from.to_owned(), to.to_owned());
        // Off the async threads: it takes as long as the store is large.
        let copied = tokio::task::spawn_blocking(move || StagedCopy::make(&from, &to, |_| Ok(()))).await;
        copied.map_err(|error| OpenError::Database(DbError::Other(error.to_string())))?.map(Self)
    }

    /// Where it stands until then.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    #[boxed]
    pub async fn open_to_read(&self, options: Options) -> Result<Store, OpenError> {
        Store::open_file_to_read(self.path(), options).await
    }

    /// Gives it its name.
    #[boxed]
    pub async fn place(self) -> Result<(), OpenError> {
        let placed = tokio::task::spawn_blocking(move || self.0.place()).await;
        placed.map_err(|error| OpenError::Database(DbError::Other(error.to_string())))?
    }
}

/// Copies a SQLite store to a new file, consistent at one instant, also while a server has it open.
#[boxed]
pub async fn backup_file(from: &Path, to: &Path) -> Result<(), OpenError> {
    StagedBackup::make(from, to).await?.place().await
}

impl Store {
    /// Copies the whole database to a new file, consistent at one instant, while the store goes on.
    #[boxed]
    pub async fn backup(&self, to: &Path) -> Result<(), ReadError> {
        let Reads::Sqlite(SqliteReads::File(pool)) = &self.inner.reads else {
            let what = "only a SQLite file is backed up by us; for PostgreSQL use pg_dump or pg_basebackup";
            return Err(ReadError::Database(what.to_owned()));
        };
        backup_file(pool.path(), to).await.map_err(|error| ReadError::Database(error.to_string()))
    }
}
