//! PostgreSQL: a few lanes, runs hashed to them, one pipelined transaction per group.

pub(crate) mod commit;
pub(crate) mod connect;
pub(crate) mod partitions;
pub(crate) mod reads;

use tokio::sync::watch;

use crate::error::OpenError;
use crate::options::Options;

/// What opening gives to the store.
pub(crate) struct Opened {
    pub reads: reads::PgReads,
    pub committers: Vec<commit::PgCommitter>,
    pub wakes: watch::Receiver<u64>,
}

pub(crate) async fn open(address: &str, options: &Options) -> Result<Opened, OpenError> {
    let _ = options;
    Err(OpenError::Connect { what: format!("{address}: not yet") })
}
