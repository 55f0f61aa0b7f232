//! Faults that a simulation or a test injects into a store.

use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::error::DbError;

/// What a simulation may do to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    None,
    /// The connection is lost at this point.
    Lost,
    /// There is no room; only before a commit.
    DiskFull,
    /// The server dies at this point: the commit never ends.
    Died,
    /// The lane panics at this point.
    Panic,
}

impl CommitFault {
    pub(crate) async fn happens(self) -> Result<(), DbError> {
        match self {
            Self::None => Ok(()),
            Self::Lost => Err(DbError::Lost("fault injected".into())),
            Self::DiskFull => Err(DbError::DiskFull("fault injected".into())),
            Self::Died => std::future::pending().await,
            Self::Panic => panic!("fault injected"),
        }
    }
}

/// Faults that a simulation injects. Nothing happens unless a method is overridden.
pub trait Faults: Send + Sync + 'static {
    /// Before anything of the group is written: [`CommitFault::Lost`] means nothing was applied.
    fn before_commit(&self, _group: u64) -> BoxFuture<'static, CommitFault> {
        std::future::ready(CommitFault::None).boxed()
    }

    /// After the commit: [`CommitFault::Lost`] means it was applied and the lane does not know.
    fn after_commit(&self, _group: u64) -> BoxFuture<'static, CommitFault> {
        std::future::ready(CommitFault::None).boxed()
    }

    fn before_read(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    /// Whether reads fail now, as those of a database that does not answer.
    fn fails_reads(&self) -> bool {
        false
    }
}

/// No faults at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl Faults for NoFaults {}

/// One fault, at every commit from a moment on that the test chooses. Until then there is none.
#[derive(Debug)]
pub struct FaultFrom {
    fault: CommitFault,
    /// So many commits are made before; below zero, all are.
    left: AtomicI64,
}

impl FaultFrom {
    pub fn new(fault: CommitFault) -> Self {
        Self { fault, left: AtomicI64::new(-1) }
    }

    /// The fault is at the commit after so many more, and at those that follow.
    pub fn after(&self, commits: u32) {
        self.left.store(commits.into(), Ordering::SeqCst);
    }

    pub fn now(&self) {
        self.after(0);
    }

    pub fn never(&self) {
        self.left.store(-1, Ordering::SeqCst);
    }
}

impl Faults for FaultFrom {
    fn before_commit(&self, _group: u64) -> BoxFuture<'static, CommitFault> {
        let fewer = |left: i64| (left > 0).then(|| left - 1);
        let met = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer) == Err(0);
        std::future::ready(if met { self.fault } else { CommitFault::None }).boxed()
    }
}
