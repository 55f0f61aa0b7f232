use interlock_core::ids::{TenantId, WorkerIdentityId};

use super::{WorkerIdentityRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// Workers whose token has this lookup part: one, unless two were made alike.
    pub async fn find_enrolments(&self, lookup: &str) -> Result<Vec<WorkerIdentityRow>, ReadError> {
        let rows = self.rows(&sql::WORKER_IDENTITY_FIND, args![lookup]).await?;
        Ok(rows.into_iter().map(identity).collect::<Result<_, _>>()?)
    }

    /// The worker that a certificate names, unless it, or its tenant, may not act any more.
    pub async fn live_worker_identity(
        &self,
        tenant: TenantId,
        id: WorkerIdentityId,
    ) -> Result<Option<WorkerIdentityRow>, ReadError> {
        self.found(&sql::WORKER_IDENTITY_LIVE, args![tenant, id], identity).await
    }

    pub async fn worker_identity(
        &self,
        tenant: TenantId,
        id: WorkerIdentityId,
    ) -> Result<Option<WorkerIdentityRow>, ReadError> {
        self.found(&sql::WORKER_IDENTITY_GET, args![tenant, id], identity).await
    }

    /// Newest first; `after` is the last one of the page before.
    pub async fn worker_identities(
        &self,
        tenant: TenantId,
        after: Option<WorkerIdentityId>,
        limit: usize,
    ) -> Result<Vec<WorkerIdentityRow>, ReadError> {
        let below = after.map_or(Value::Id([0xff; 16]), Value::from);
        let rows = self.rows(&sql::WORKER_IDENTITY_LIST, args![tenant, below, limit]).await?;
        Ok(rows.into_iter().map(identity).collect::<Result<_, _>>()?)
    }
}

fn identity(mut row: Row) -> Result<WorkerIdentityRow, CorruptRow> {
    Ok(WorkerIdentityRow {
        tenant: row.id("tenant_id")?,
        id: row.id("identity_id")?,
        name: row.text("name")?,
        terms: row.decoded("terms")?,
        token_lookup: row.text("token_lookup")?,
        token_hash: row.hash("token_hash")?,
        token_expires_at: row.time("token_expires_at")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        enrolled_at: row.opt_time("enrolled_at")?,
        key_hash: row.opt_hash("key_hash")?,
        renewed_at: row.opt_time("renewed_at")?,
        certificate_expires_at: row.opt_time("certificate_expires_at")?,
        revoked_at: row.opt_time("revoked_at")?,
        revoked_by: row.opt_text("revoked_by")?,
    })
}
