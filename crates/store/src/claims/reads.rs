use std::collections::HashMap;

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::run::why::Heartbeat;
use interlock_core::time::Timestamp;

use super::{Claimed, HeldStep, QueueLoad, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// Running steps whose session is gone, offline, or past its lease.
    pub async fn lost_claims(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, ReadError> {
        self.readable(&sql::LOST_CLAIMS, limit, |limit| args![now, limit], claim).await
    }

    pub async fn timed_out_steps(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, ReadError> {
        self.readable(&sql::TIMED_OUT, limit, |limit| args![now, limit], claim).await
    }

    /// What a session holds.
    pub async fn claims_of(&self, session: SessionId) -> Result<Vec<Claimed>, ReadError> {
        let rows = self.rows(&sql::CLAIMS_OF, args![session]).await?;
        Ok(self.readable_part(&sql::CLAIMS_OF, rows, claim))
    }

    /// When the worker that has the run's step was last heard of; nothing where no worker has it.
    pub async fn heartbeat(&self, tenant: TenantId, run: RunId) -> Result<Option<Heartbeat>, ReadError> {
        let mut rows = self.rows(&sql::CLAIM_HEARTBEAT, args![tenant, run]).await?;
        let Some(row) = rows.first_mut() else { return Ok(None) };
        Ok(Some(row.opt_time("heartbeat_at")?.map_or(Heartbeat::Gone, Heartbeat::At)))
    }

    /// The tenant's queues that have something to do, by name; of one workspace only, where one is given.
    pub async fn queues(
        &self,
        tenant: TenantId,
        workspace: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<QueueLoad>, ReadError> {
        let rows = self.rows(&sql::QUEUES, args![now, tenant, workspace.unwrap_or("")]).await?;
        let read = |mut row: Row| {
            Ok(QueueLoad {
                queue: row.text("queue")?,
                ready: row.num("ready")?,
                delayed: row.num("delayed")?,
                running: row.num("running")?,
                oldest_ready_at: row.opt_time("oldest_ready_at")?,
            })
        };
        rows.into_iter().map(read).collect::<Result<_, CorruptRow>>().map_err(ReadError::from)
    }

    /// How many of the tenant's steps each worker session has.
    pub async fn claims_by_session(&self, tenant: TenantId) -> Result<HashMap<SessionId, u64>, ReadError> {
        let rows = self.rows(&sql::CLAIMS_BY_SESSION, args![tenant]).await?;
        let read = |mut row: Row| Ok((row.id("session_id")?, row.num("steps")?));
        rows.into_iter().map(read).collect::<Result<_, CorruptRow>>().map_err(ReadError::from)
    }

    /// The tenant's steps that a worker session has, the oldest first.
    pub async fn held_by(
        &self,
        tenant: TenantId,
        session: SessionId,
        limit: usize,
    ) -> Result<Vec<HeldStep>, ReadError> {
        let rows = self.rows(&sql::HELD_BY, args![tenant, session, limit]).await?;
        let read = |mut row: Row| {
            let (run, position, attempt) = (row.id("run_id")?, row.num("position")?, row.num("attempt")?);
            Ok(HeldStep { run, position, attempt, claimed_at: row.opt_time("claimed_at")? })
        };
        rows.into_iter().map(read).collect::<Result<_, CorruptRow>>().map_err(ReadError::from)
    }

    /// How many steps are in the hands of workers that have not been heard of since, over all tenants.
    pub async fn orphans(&self, heard_before: Timestamp) -> Result<u64, ReadError> {
        let mut rows = self.rows(&sql::ORPHANS_COUNT, args![heard_before]).await?;
        Ok(rows.first_mut().map_or(Ok(0), |row| row.num("runs"))?)
    }
}

fn claim(mut row: Row) -> Result<Claimed, CorruptRow> {
    let (tenant, run): (TenantId, RunId) = (row.id("tenant_id")?, row.id("run_id")?);
    let (position, attempt) = (row.num("position")?, row.num("attempt")?);
    let session = row.id("session_id")?;
    let control = row.name("control").map_err(|error| CorruptRow { row: run.to_string(), ..error })?;
    Ok(Claimed { tenant, run, position, attempt, session, control })
}
