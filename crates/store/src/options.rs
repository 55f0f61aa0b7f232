//! Where a store is and how it is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::ServerId;

use crate::error::OpenError;
use crate::faults::Faults;

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    /// A database in memory under a name that is unique in the process. It outlives the stores opened on it, so that
    /// a simulated crash can reopen it; [`crate::forget_memory`] ends it.
    SqliteMemory(String),
    Postgres(String),
}

impl StoreUrl {
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.to_owned()));
        }
        let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
        match path {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            _ => Err(OpenError::InvalidUrl { url: without_password(url) }),
        }
    }
}

impl StoreUrl {
    /// Nothing of it goes over a network.
    pub fn is_local(&self) -> bool {
        let Self::Postgres(address) = self else { return true };
        let rest = address.split_once("://").map_or("", |(_, rest)| rest);
        let hosts = rest.split(['/', '?']).next().unwrap_or_default();
        let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
        hosts.split(',').all(|host| {
            let name = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or_default() };
            // A path is a socket's folder, written with percent signs.
            ["", "localhost", "[::1]"].contains(&name)
                || name.starts_with("127.")
                || name.starts_with("%2")
                || name.starts_with("[::1]")
        })
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::SqliteMemory(name) => write!(f, "sqlite memory {name}"),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

/// The URL as it may stand in a log.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.chars().take(80).collect() };
    match rest.rsplit_once('@') {
        Some((login, host)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    pub server: ServerId,
    /// Committers on PostgreSQL; runs are hashed to them. One more is for maintenance, and one for those who write little
    /// beside others who write much. SQLite has one writer whatever this says.
    pub lanes: usize,
    /// How many change sets one commit takes at most.
    pub group_max: usize,
    /// How many submissions may wait in a lane before callers are told that it is busy.
    pub queue_max: usize,
    pub readers: usize,
    pub read_timeout: Duration,
    pub mode: Mode,
    /// Bring the schema up to date while opening.
    pub migrate: bool,
    /// Quiet tenants have a priority lane on a database in memory too, for simulation: one commits while the other is slow.
    /// PostgreSQL has one whatever this says, a SQLite file none.
    pub priority_lane: bool,
}

impl Options {
    pub fn new(server: ServerId) -> Self {
        Self {
            server,
            lanes: lanes(),
            group_max: 512,
            queue_max: 10_000,
            readers: 4,
            read_timeout: Duration::from_secs(30),
            mode: Mode::Threaded,
            migrate: true,
            priority_lane: false,
        }
    }
}

/// One lane where the database and the server share two cores: half as many groups, each twice as large, cost the
/// database a third less. More where there are cores to spare.
fn lanes() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 4).clamp(1, 4)
}

/// Who executes what the store does.
#[derive(Clone)]
pub enum Mode {
    /// SQLite's writer has a thread of its own, reads run on the blocking pool.
    Threaded,
    /// For deterministic simulation: the lane is a task of the current runtime, reads run in place, only tokio's
    /// time is used. SQLite in memory only.
    Inline(Arc<dyn Faults>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_and_sockets_are_local() {
        for local in ["sqlite:a", "postgres://u:p@127.0.0.1:5/d", "postgres://localhost/d", "postgres://[::1]:5/d"] {
            assert!(StoreUrl::parse(local).unwrap().is_local(), "{local}");
        }
        for remote in ["postgres://u@db.example/d", "postgres://localhost,db.example/d", "postgres://u@10.0.0.1/d"] {
            assert!(!StoreUrl::parse(remote).unwrap().is_local(), "{remote}");
        }
    }
}
