use interlock_core::ids::{TenantId, WorkerIdentityId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{WorkerIdentityRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed, changed, json_text, of_tenant, stored};

#[derive(Debug, Clone)]
pub struct AddWorkerIdentity(pub WorkerIdentityRow);

impl Write for AddWorkerIdentity {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let values = args![
            row.tenant,
            row.id,
            &row.name,
            json_text(&row.terms)?,
            &row.token_lookup,
            row.token_hash,
            row.token_expires_at,
            row.created_at,
            row.created_by.as_ref()
        ];
        stored(db, &sql::WORKER_IDENTITY_ADD, values).await
    }
}

/// A worker uses its token. [`Changed::Gone`] where another key has, or where it is over or revoked.
#[derive(Debug, Clone, Copy)]
pub struct EnrolWorker {
    pub tenant: TenantId,
    pub identity: WorkerIdentityId,
    /// Of the worker's public key.
    pub key_hash: Hash,
    pub at: Timestamp,
    pub certificate_expires_at: Timestamp,
}

impl Write for EnrolWorker {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.at, self.key_hash, self.certificate_expires_at, self.tenant, self.identity];
        changed(db, &sql::WORKER_IDENTITY_ENROL, values).await
    }
}

/// [`Changed::Gone`] where it is revoked.
#[derive(Debug, Clone, Copy)]
pub struct RenewWorker {
    pub tenant: TenantId,
    pub identity: WorkerIdentityId,
    pub at: Timestamp,
    pub certificate_expires_at: Timestamp,
}

impl Write for RenewWorker {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.at, self.certificate_expires_at, self.tenant, self.identity];
        changed(db, &sql::WORKER_IDENTITY_RENEW, values).await
    }
}

/// [`Changed::Gone`] where it is revoked already.
#[derive(Debug, Clone)]
pub struct RevokeWorkerIdentity {
    pub tenant: TenantId,
    pub identity: WorkerIdentityId,
    pub at: Timestamp,
    pub by: String,
}

impl Write for RevokeWorkerIdentity {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::WORKER_IDENTITY_REVOKE, args![self.at, &self.by, self.tenant, self.identity]).await
    }
}

of_tenant! {
    AddWorkerIdentity.0.tenant;
    EnrolWorker.tenant;
    RenewWorker.tenant;
    RevokeWorkerIdentity.tenant;
}
