use interlock_core::ids::{OutboxId, TenantId};
use interlock_core::time::Timestamp;

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed, changed};

/// What follows a try that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxRetry {
    At(Timestamp),
    /// Given up; it no longer holds back later messages.
    Dead(Timestamp),
}

/// A message has been delivered.
#[derive(Debug, Clone, Copy)]
pub struct OutboxDelivered {
    pub tenant: TenantId,
    pub id: OutboxId,
    pub at: Timestamp,
}

impl Write for OutboxDelivered {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::OUTBOX_DELIVERED, args![self.at, self.tenant, self.id]).await
    }
}

/// A message could not be delivered.
#[derive(Debug, Clone)]
pub struct OutboxFailed {
    pub tenant: TenantId,
    pub id: OutboxId,
    pub error: String,
    pub retry: OutboxRetry,
}

impl Write for OutboxFailed {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let (next, dead) = match self.retry {
            OutboxRetry::At(at) => (Some(at), None),
            OutboxRetry::Dead(at) => (None, Some(at)),
        };
        changed(db, &sql::OUTBOX_FAILED, args![&self.error, next, dead, self.tenant, self.id]).await
    }
}

/// Takes a due message for one sender. [`Changed::Gone`] where another has it.
#[derive(Debug, Clone, Copy)]
pub struct TakeMessage {
    pub tenant: TenantId,
    pub id: OutboxId,
    pub attempts: u32,
    pub now: Timestamp,
    pub until: Timestamp,
}

impl Write for TakeMessage {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.until, self.tenant, self.id, self.attempts, self.now];
        changed(db, &sql::OUTBOX_TAKE, values).await
    }
}

/// Sends messages again that were given up. Answers how many were.
#[derive(Debug, Clone)]
pub struct ReplayDeadLetters {
    pub tenant: TenantId,
    pub ids: Vec<OutboxId>,
    pub at: Timestamp,
}

impl Write for ReplayDeadLetters {
    type Answer = u64;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<u64, DbError> {
        let mut queued = 0;
        for id in &self.ids {
            queued += db.execute(&sql::OUTBOX_REPLAY, args![self.at, self.tenant, *id]).await?;
        }
        Ok(queued)
    }
}
