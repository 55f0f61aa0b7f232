//! Opening a store and an engine the way every command does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use interlock_core::ids::ServerId;
use interlock_engine::clock::Clock;
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::ids::IdSource;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{Options, Store, StoreUrl};

/// A store opened for this process, with its schema brought up to date.
pub async fn store(url: &str) -> anyhow::Result<Store> {
    let url = StoreUrl::parse(url)?;
    Store::open(&url, Options::new(fresh_server_id())).await.with_context(|| format!("cannot open {url}"))
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
    // A check of a large store takes long, and the operator who runs it waits.
    let options = Options { read_timeout: Duration::from_hours(1), ..Options::new(fresh_server_id()) };
    Store::open_to_read(&url, options).await.with_context(|| format!("cannot open {url}"))
}

pub fn engine_options() -> EngineOptions {
    EngineOptions::new(Arc::new(NoOtherDestinations))
}

/// A store and an engine on it.
pub async fn engine(url: &str, options: EngineOptions) -> anyhow::Result<Engine> {
    Ok(Engine::open(store(url).await?, options).await?)
}
