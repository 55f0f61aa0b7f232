//! Reads on PostgreSQL: a few connections used in turn, each pipelining what several callers ask at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use super::connect::{PgDb, Target, connect_to_read};
use crate::error::{DbError, ReadError};
use crate::sql::Stmt;
use crate::value::{Row, Value};

pub(crate) struct PgReads {
    target: Target,
    slots: Vec<Mutex<Option<Arc<PgDb>>>>,
    turn: AtomicUsize,
    timeout: Duration,
}

impl PgReads {
    pub fn new(target: Target, readers: usize, timeout: Duration) -> Self {
        let slots = (0..readers.max(1)).map(|_| Mutex::default()).collect();
        Self { target, slots, turn: AtomicUsize::new(0), timeout }
    }

    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// A connection that was alive a moment ago.
    async fn connection(&self) -> Result<Arc<PgDb>, DbError> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.slots.len();
        let mut slot = self.slots[turn].lock().await;
        if let Some(db) = slot.as_ref().filter(|db| !db.is_closed()) {
            return Ok(Arc::clone(db));
        }
        let db = Arc::new(connect_to_read(&self.target, self.timeout).await?);
        *slot = Some(Arc::clone(&db));
        Ok(db)
    }

    pub async fn rows_many(&self, queries: Vec<(&'static Stmt, Vec<Value>)>) -> Result<Vec<Vec<Row>>, ReadError> {
        if queries.is_empty() {
            return Ok(Vec::new());
        }
        let read = async {
            let db = self.connection().await?;
            db.query_many(queries).await
        };
        match tokio::time::timeout(self.timeout, read).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(ReadError::Unavailable(format!("no answer within {:?}", self.timeout))),
        }
    }
}
