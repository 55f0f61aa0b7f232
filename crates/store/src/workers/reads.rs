use interlock_core::ids::{SessionId, TenantId, WorkerIdentityId};

use super::{SessionRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    pub async fn sessions(&self) -> Result<Vec<SessionRow>, ReadError> {
        self.readable(&sql::SESSIONS, 0, |_| vec![], session).await
    }

    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        let rows = self.rows(&sql::SESSION_GET, args![id]).await?;
        Ok(rows.into_iter().next().map(session).transpose()?)
    }

    /// The registrations of one worker, the newest first: those with its certificate, and those under its name.
    pub async fn sessions_of_worker(
        &self,
        tenant: TenantId,
        worker: &str,
        identity: Option<WorkerIdentityId>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, ReadError> {
        let rows = self.rows(&sql::SESSIONS_OF_WORKER, args![tenant, worker, identity, limit]).await?;
        rows.into_iter().map(session).collect::<Result<_, CorruptRow>>().map_err(ReadError::from)
    }
}

fn session(mut row: Row) -> Result<SessionRow, CorruptRow> {
    Ok(SessionRow {
        id: row.id("session_id")?,
        tenant: row.opt_id("tenant_id")?,
        worker: row.text("worker")?,
        build_id: row.opt_text("build_id")?,
        queues: row.decoded("queues")?,
        slots: row.num("slots")?,
        state: row.name("state")?,
        registered_at: row.time("registered_at")?,
        lease_expires_at: row.time("lease_expires_at")?,
        heartbeat_at: row.time("heartbeat_at")?,
        tasks: row.opt_decoded("tasks")?,
        capabilities: row.opt_decoded("capabilities")?,
        identity: row.opt_id("identity_id")?,
        terms: row.opt_decoded("terms")?,
        unlisted: row.opt_decoded("unlisted")?.unwrap_or_default(),
        fault: row.opt_decoded("fault")?,
        lost: row.opt_decoded("lost")?,
        maintenance: row.opt_decoded("maintenance")?,
        labels: row.opt_decoded("labels")?.unwrap_or_default(),
    })
}
