//! Opening a store and an engine the way every command does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use interlock_core::ids::ServerId;
use interlock_engine::deliver::NoOtherDestinations;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{Options, Store, StoreUrl};

/// A store opened for this process, with its schema brought up to date.
pub async fn store(url: &str) -> anyhow::Result<Store> {
    let engine = engine_options();
    open_store(url, &engine, true).await
}

pub async fn open_store(url: &str, engine: &EngineOptions, migrate: bool) -> anyhow::Result<Store> {
    let url = StoreUrl::parse(url)?;
    if let StoreUrl::Sqlite(path) = &url {
        anyhow::ensure!(migrate || path.exists(), "there is no store at {}", path.display());
    }
    let server = ServerId(engine.ids.fresh());
    let options = Options { migrate, ..Options::new(server) };
    Store::open(&url, options).await.with_context(|| format!("cannot open {url}"))
}

/// A store to look at, also while a server has it.
pub async fn store_to_read(url: &str) -> anyhow::Result<Store> {
    let url = StoreUrl::parse(url)?;
    if let StoreUrl::Sqlite(path) = &url {
        anyhow::ensure!(path.exists(), "there is no store at {}", path.display());
    }
    let server = ServerId(engine_options().ids.fresh());
    // Whoever checks a large store by hand waits for it.
    let options = Options { read_timeout: Duration::from_hours(1), ..Options::new(server) };
    Store::open_to_read(&url, options).await.with_context(|| format!("cannot open {url}"))
}

pub fn engine_options() -> EngineOptions {
    EngineOptions::new(Arc::new(NoOtherDestinations))
}

/// A store and an engine on it.
pub async fn engine(url: &str, options: EngineOptions) -> anyhow::Result<Engine> {
    let store = open_store(url, &options, true).await?;
    Ok(Engine::open(store, options).await?)
}
