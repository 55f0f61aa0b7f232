use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_core::state::IdempotencyState;
use interlock_core::time::Timestamp;

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed, changed, stored};

/// Takes a key before work that is not one commit, or takes over one whose work was given up.
#[derive(Debug, Clone)]
pub struct BeginIdempotency {
    pub tenant: TenantId,
    pub client: String,
    pub key: String,
    pub source: String,
    pub request_hash: Hash,
    pub now: Timestamp,
    /// Until then a repeat is told to wait; after that it takes over.
    pub lock_until: Timestamp,
    pub expires_at: Timestamp,
    /// A request that failed is tried again while it has had fewer attempts than this.
    pub attempts_max: u32,
}

impl Write for BeginIdempotency {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let values = args![
            self.tenant,
            &self.client,
            &self.key,
            &self.source,
            self.request_hash,
            self.now,
            self.expires_at,
            self.lock_until,
            self.attempts_max
        ];
        stored(db, &sql::IDEMPOTENCY_BEGIN, values).await
    }
}

/// The request is still being worked on: no other request with its key begins until then.
#[derive(Debug, Clone)]
pub struct RenewIdempotency {
    pub tenant: TenantId,
    pub client: String,
    pub key: String,
    pub lock_until: Timestamp,
}

impl Write for RenewIdempotency {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.lock_until, self.tenant, &self.client, &self.key];
        changed(db, &sql::IDEMPOTENCY_RENEW, values).await
    }
}

/// The answer to a request whose key was recorded, for its repeats.
#[derive(Debug, Clone)]
pub struct FinishIdempotency {
    pub tenant: TenantId,
    pub client: String,
    pub key: String,
    pub state: IdempotencyState,
    pub response: Option<Json>,
    pub error: Option<String>,
    pub at: Timestamp,
    pub expires_at: Timestamp,
}

impl Write for FinishIdempotency {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![
            self.state.as_str(),
            self.response.as_ref(),
            self.error.as_ref(),
            self.at,
            self.expires_at,
            self.tenant,
            &self.client,
            &self.key
        ];
        changed(db, &sql::IDEMPOTENCY_FINISH, values).await
    }
}
