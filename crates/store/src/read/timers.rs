//! What the loops look for: timers, lost claims, sessions, signals and messages that are due.

use interlock_core::caps::Caps;
use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::time::Timestamp;
use interlock_core::why::Heartbeat;

use crate::error::{CorruptRow, ReadError};
use crate::rows::{Claimed, IdempotencyRecord, OpenWait, OutboxMessage, SessionRow, StoredSignal, Tenant, Unmatched};
use crate::sql::read;
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// Runs whose timer has come: deadline, wait, approval clocks.
    pub async fn due_runs(&self, now: Timestamp, limit: usize) -> Result<Vec<(TenantId, RunId)>, ReadError> {
        let read = |mut row: Row| Ok((row.id("tenant_id")?, row.id("run_id")?));
        self.readable(&read::DUE_RUNS, limit, |limit| args![now, limit], read).await
    }

    /// The first timer after an instant.
    pub async fn next_wake(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        let mut rows = self.rows(&read::NEXT_WAKE, args![after]).await?;
        Ok(rows.first_mut().map(|row| row.time("wake_at")).transpose()?)
    }

    /// Running steps whose session is gone, offline, or past its lease.
    pub async fn lost_claims(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, ReadError> {
        self.readable(&read::LOST_CLAIMS, limit, |limit| args![now, limit], claim).await
    }

    /// When the worker that has the run's step was last heard of; nothing where no worker has it.
    pub async fn heartbeat(&self, tenant: TenantId, run: RunId) -> Result<Option<Heartbeat>, ReadError> {
        let mut rows = self.rows(&read::CLAIM_HEARTBEAT, args![tenant, run]).await?;
        let Some(row) = rows.first_mut() else { return Ok(None) };
        Ok(Some(row.opt_time("heartbeat_at")?.map_or(Heartbeat::Gone, Heartbeat::At)))
    }

    /// How many steps are in the hands of workers that have not been heard of since.
    pub async fn orphans(&self, heard_before: Timestamp) -> Result<u64, ReadError> {
        let mut rows = self.rows(&read::ORPHANS_COUNT, args![heard_before]).await?;
        Ok(rows.first_mut().map_or(Ok(0), |row| row.num("runs"))?)
    }

    pub async fn timed_out_steps(&self, now: Timestamp, limit: usize) -> Result<Vec<Claimed>, ReadError> {
        self.readable(&read::TIMED_OUT, limit, |limit| args![now, limit], claim).await
    }

    /// What a session holds.
    pub async fn claims_of(&self, session: SessionId) -> Result<Vec<Claimed>, ReadError> {
        let rows = self.rows(&read::CLAIMS_OF, args![session]).await?;
        Ok(self.readable_part(&read::CLAIMS_OF, rows, claim))
    }

    pub async fn sessions(&self) -> Result<Vec<SessionRow>, ReadError> {
        self.readable(&read::SESSIONS, 0, |_| vec![], session).await
    }

    pub async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, ReadError> {
        let rows = self.rows(&read::SESSION_GET, args![id]).await?;
        Ok(rows.into_iter().next().map(session).transpose()?)
    }

    pub async fn tenants(&self) -> Result<Vec<Tenant>, ReadError> {
        self.readable(&read::TENANTS, 0, |_| vec![], tenant).await
    }

    pub async fn tenant(&self, id: TenantId) -> Result<Option<Tenant>, ReadError> {
        let rows = self.rows(&read::TENANT_GET, args![id]).await?;
        Ok(rows.into_iter().next().map(tenant).transpose()?)
    }

    pub async fn tenant_by_name(&self, name: &str) -> Result<Option<Tenant>, ReadError> {
        let rows = self.rows(&read::TENANT_NAMED, args![name]).await?;
        Ok(rows.into_iter().next().map(tenant).transpose()?)
    }

    pub async fn idempotency(
        &self,
        tenant: TenantId,
        client: &str,
        key: &str,
    ) -> Result<Option<IdempotencyRecord>, ReadError> {
        let mut rows = self.rows(&read::IDEMPOTENCY_GET, args![tenant, client, key]).await?;
        let Some(row) = rows.first_mut() else { return Ok(None) };
        Ok(Some(IdempotencyRecord {
            source: row.text("source")?,
            request_hash: row.hash("request_hash")?,
            state: row.name("state")?,
            run: row.opt_id("run_id")?,
            response: row.opt_json("response")?,
            error: row.opt_text("error")?,
            attempts: row.num("attempts")?,
            created_at: row.time("created_at")?,
            updated_at: row.time("updated_at")?,
            expires_at: row.time("expires_at")?,
            lock_expires_at: row.opt_time("lock_expires_at")?,
        }))
    }

    /// Waits for a signal, in the order in which they were opened, after the last one of the page before.
    pub async fn open_waits(
        &self,
        tenant: TenantId,
        signal_type: &str,
        key: &str,
        after: Option<&OpenWait>,
        limit: usize,
    ) -> Result<Vec<OpenWait>, ReadError> {
        let opened_at = after.map_or(Timestamp(i64::MIN), |wait| wait.opened_at);
        let run = after.map_or(Value::Id([0; 16]), |wait| wait.run.into());
        let rows = self.rows(&read::WAITS_OPEN, args![tenant, signal_type, key, opened_at, run, limit]).await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(OpenWait {
                    run: row.id("run_id")?,
                    position: row.num("position")?,
                    accept_from: row.time("accept_from")?,
                    opened_at: row.time("opened_at")?,
                })
            })
            .collect()
    }

    /// Signals that nobody has consumed and that came at this instant or later, oldest first.
    pub async fn pending_signals(
        &self,
        tenant: TenantId,
        signal_type: &str,
        key: &str,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<StoredSignal>, ReadError> {
        let rows = self.rows(&read::SIGNALS_PENDING, args![tenant, signal_type, key, from, limit]).await?;
        rows.into_iter().map(stored_signal).collect()
    }

    /// The same for a run, without those for everybody that it has heard.
    pub async fn unheard_signals(
        &self,
        wait: &OpenWait,
        (tenant, signal_type, key): (TenantId, &str, &str),
        limit: usize,
    ) -> Result<Vec<StoredSignal>, ReadError> {
        let values = args![tenant, signal_type, key, wait.accept_from, wait.run, limit];
        self.rows(&read::SIGNALS_UNHEARD, values).await?.into_iter().map(stored_signal).collect()
    }

    /// Keys that have both an unconsumed signal and an open wait that accepts it.
    pub async fn unmatched(&self, limit: usize) -> Result<Vec<Unmatched>, ReadError> {
        let read = |mut row: Row| {
            Ok(Unmatched { tenant: row.id("tenant_id")?, signal_type: row.text("type")?, key: row.text("key")? })
        };
        self.readable(&read::UNMATCHED, limit, |limit| args![limit], read).await
    }

    /// Messages that are due, the first of each run and destination only: later ones wait for it.
    pub async fn due_outbox(&self, now: Timestamp, limit: usize) -> Result<Vec<OutboxMessage>, ReadError> {
        let read = |mut row: Row| {
            Ok(OutboxMessage {
                tenant: row.id("tenant_id")?,
                id: row.id("outbox_id")?,
                run: row.id("run_id")?,
                destination: row.text("destination")?,
                payload: row.json("payload")?,
                created_at: row.time("created_at")?,
                attempts: row.num("attempts")?,
            })
        };
        self.readable(&read::OUTBOX_DUE, limit, |limit| args![now, limit], read).await
    }

    /// When the next message is due.
    pub async fn next_outbox(&self) -> Result<Option<Timestamp>, ReadError> {
        let mut rows = self.rows(&read::NEXT_OUTBOX, vec![]).await?;
        Ok(rows.first_mut().map(|row| row.time("next_at")).transpose()?)
    }
}

fn claim(mut row: Row) -> Result<Claimed, CorruptRow> {
    let (tenant, run): (TenantId, RunId) = (row.id("tenant_id")?, row.id("run_id")?);
    let (position, attempt) = (row.num("position")?, row.num("attempt")?);
    let session = row.id("session_id")?;
    let control = row.name("control").map_err(|error| CorruptRow { row: run.to_string(), ..error })?;
    Ok(Claimed { tenant, run, position, attempt, session, control })
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
        unlisted: row.opt_decoded("unlisted")?.unwrap_or_default(),
    })
}

fn tenant(mut row: Row) -> Result<Tenant, CorruptRow> {
    let (id, name) = (row.id("tenant_id")?, row.text("name")?);
    let caps =
        Caps { max_concurrency: row.opt_num("max_concurrency")?, max_runs_per_min: row.opt_num("max_runs_per_min")? };
    Ok(Tenant {
        id,
        name,
        caps,
        pending_runs_max: row.opt_num("pending_runs_max")?,
        weight: row.num("weight")?,
        created_at: row.time("created_at")?,
        settings: row.decoded("settings")?,
        disabled_at: row.opt_time("disabled_at")?,
    })
}

fn stored_signal(mut row: Row) -> Result<StoredSignal, ReadError> {
    Ok(StoredSignal {
        id: row.id("signal_id")?,
        received_at: row.time("received_at")?,
        payload: row.json("payload")?,
        broadcast: row.flag("broadcast")?,
    })
}
