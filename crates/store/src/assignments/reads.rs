use interlock_core::ids::{SessionId, TenantId};
use interlock_core::time::Timestamp;

use super::{LiveAssignment, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// The runs that a session was offered or has, the oldest first.
    pub async fn assignments_of(&self, session: SessionId, limit: usize) -> Result<Vec<LiveAssignment>, ReadError> {
        self.readable(&sql::ASSIGNMENTS_OF, limit, |limit| args![session, limit], assignment).await
    }

    /// The same of one tenant.
    pub async fn assigned_to(
        &self,
        tenant: TenantId,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<LiveAssignment>, ReadError> {
        let rows = self.rows(&sql::ASSIGNED_TO, args![session, tenant, limit]).await?;
        rows.into_iter().map(assignment).collect::<Result<_, CorruptRow>>().map_err(ReadError::from)
    }

    /// Those whose session is gone, offline, or past its lease.
    pub async fn lost_assignments(&self, now: Timestamp, limit: usize) -> Result<Vec<LiveAssignment>, ReadError> {
        self.readable(&sql::LOST_ASSIGNMENTS, limit, |limit| args![now, limit], assignment).await
    }
}

fn assignment(mut row: Row) -> Result<LiveAssignment, CorruptRow> {
    Ok(LiveAssignment {
        tenant: row.id("tenant_id")?,
        run: row.id("run_id")?,
        session: row.id("session_id")?,
        state: row.name("state")?,
        offered_at: row.time("offered_at")?,
        acked_at: row.opt_time("acked_at")?,
    })
}
