//! Opening a store and an engine the way every command does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use interlock_core::ids::ServerId;
use interlock_engine::clock::Clock;
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::ids::IdSource;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{Options, Store, StoreUrl};

use super::LOCAL_KEY_FILE;
use crate::output::exit::{Exit, ExitError};

/// A store opened for this process, with its schema brought up to date.
pub async fn store(url: &str) -> anyhow::Result<Store> {
    let url = StoreUrl::parse(url).map_err(|error| ExitError::saying(Exit::Config, error.to_string()))?;
    Store::open(&url, Options::new(fresh_server_id())).await.with_context(|| format!("cannot open {url}"))
}

/// What to tell before a new SQLite database is made in the service of a data folder that has served one before: it was lost,
/// or its disk is not there.
pub fn lost_database(url: &str, data: &Path) -> Option<String> {
    let Ok(StoreUrl::Sqlite(path)) = StoreUrl::parse(url) else { return None };
    if path.exists() || !data.join(LOCAL_KEY_FILE).exists() {
        return None;
    }
    Some(format!(
        "there is no database at {}, although a server has run with the data folder {} before: a new, empty one is made. If \
         there should be runs, stop this server, see whether the right disk is mounted, and put the database back or \
         restore a backup (`interlock db restore`)",
        path.display(),
        data.display()
    ))
}

/// Not from an engine's source: the clock of that is set by the store's, and must not have been read before.
pub fn fresh_server_id() -> ServerId {
    ServerId(IdSource::new(Clock::system()).fresh())
}

/// A store to look at, also while a server has it.
pub async fn store_to_read(url: &str) -> anyhow::Result<Store> {
    let url = StoreUrl::parse(url)?;
    if let StoreUrl::Sqlite(path) = &url {
        anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    }
    Store::open_to_read(&url, options_to_read()).await.with_context(|| format!("cannot open {url}"))
}

/// A check of a large store takes long, and the operator who runs it waits.
pub fn options_to_read() -> Options {
    Options { read_timeout: Duration::from_hours(1), ..Options::new(fresh_server_id()) }
}

pub fn engine_options() -> EngineOptions {
    EngineOptions::new(Arc::new(NoOtherDestinations))
}

/// A store and an engine on it.
pub async fn engine(url: &str, options: EngineOptions) -> anyhow::Result<Engine> {
    Ok(Engine::open(store(url).await?, options).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_was_lost_is_told_from_one_that_never_was() {
        let data = std::env::temp_dir().join(format!("interlock-lost-database-{}", std::process::id()));
        std::fs::create_dir_all(&data).unwrap();
        let path = data.join("interlock.db");
        let url = format!("sqlite:{}", path.display());
        assert_eq!(lost_database(&url, &data), None, "the first start");
        std::fs::write(data.join(LOCAL_KEY_FILE), "").unwrap();
        assert!(lost_database(&url, &data).is_some_and(|told| told.contains("interlock db restore")));
        assert_eq!(lost_database("postgres://h/db", &data), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(lost_database(&url, &data), None);
        std::fs::remove_dir_all(&data).unwrap();
    }
}
