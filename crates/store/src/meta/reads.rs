use std::sync::atomic::Ordering;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::state::RunState;
use interlock_core::time::Timestamp;

use super::rows::{unparked_key, unparked_run};
use super::{DurableSetting, Stats, sql};
use crate::error::{CorruptRow, ReadError};
use crate::restore;
use crate::store::{Reads, Store};
use crate::value::{Row, args};

impl Store {
    /// A value that was kept by `SetOnce`.
    pub async fn kept(&self, name: &str) -> Result<Option<String>, ReadError> {
        let mut rows = self.rows(&sql::META_GET, args![name]).await?;
        Ok(rows.first_mut().map(|row| row.text("value")).transpose()?)
    }

    /// The database's clock, where it has one of its own: SQLite runs on this server's.
    pub async fn server_time(&self) -> Result<Option<Timestamp>, ReadError> {
        if matches!(self.inner.reads, Reads::Sqlite(_)) {
            return Ok(None);
        }
        let mut rows = self.rows(&sql::SERVER_TIME, vec![]).await?;
        Ok(rows.first_mut().map(|row| row.time("now")).transpose()?)
    }

    /// Whether what goes to the database and back is encrypted; `None` where nothing goes over a network.
    pub async fn encrypted(&self) -> Result<Option<bool>, ReadError> {
        if matches!(self.inner.reads, Reads::Sqlite(_)) {
            return Ok(None);
        }
        let mut rows = self.rows(&sql::ENCRYPTED, vec![]).await?;
        Ok(rows.first_mut().map(|row| row.int("ssl")).transpose()?.map(|ssl| ssl == 1))
    }

    /// The newest instant that any server has committed: no clock may go below it.
    pub async fn last_commit_at(&self) -> Result<Timestamp, ReadError> {
        let mut newest = self.committed_until();
        for mut row in self.rows(&sql::LAST_COMMIT, vec![]).await? {
            newest = newest.max(row.opt_time("at")?.unwrap_or_default());
        }
        Ok(newest)
    }

    /// Raised by a restore; part of every attempt's fencing token.
    pub async fn epoch(&self) -> Result<u64, ReadError> {
        let mut rows = self.rows(&sql::META_GET, args!["store_epoch"]).await?;
        Ok(rows.first_mut().map_or(Ok(1), |row| row.name("value"))?)
    }

    /// The epoch of a restore that is not finished: runs that act on the outside are not all parked yet, and nothing may be
    /// dispatched.
    pub async fn restoring(&self) -> Result<Option<u64>, ReadError> {
        let mut rows = self.rows(&sql::META_GET, args![restore::RESTORING]).await?;
        let mark = rows.first_mut().map(|row| row.text("value")).transpose()?.unwrap_or_default();
        if mark.is_empty() {
            return Ok(None);
        }
        self.epoch().await.map(Some)
    }

    /// The same, where the mark was set in this very database, and not in the one that a dump was taken of.
    pub(crate) async fn restoring_here(&self) -> Result<Option<u64>, ReadError> {
        if matches!(self.inner.reads, Reads::Postgres(..)) {
            let rows = self.rows(&sql::IS_HERE, args![restore::RESTORING_HERE, restore::RESTORING]).await?;
            let found = rows.into_iter().next().map(|mut row| row.int("found")).transpose()?;
            if found != Some(1) {
                return Ok(None);
            }
        }
        self.restoring().await
    }

    /// When the last restore of this store was finished.
    pub async fn restored_at(&self) -> Result<Option<Timestamp>, ReadError> {
        let mut rows = self.rows(&sql::META_GET, args![restore::RESTORED_AT]).await?;
        Ok(rows.first_mut().map(|row| row.name("value")).transpose()?.map(Timestamp))
    }

    /// Live runs that the last restore could not read, and has not parked: so many of them at the most. Each is parked once it can
    /// be read, before anything else becomes of it.
    pub async fn unparked(&self, limit: usize) -> Result<Vec<(TenantId, RunId)>, ReadError> {
        let rows = self.rows(&sql::UNPARKED_LIST, args![limit]).await?;
        let read = |mut row: Row| {
            let key = row.text("key")?;
            unparked_run(&key).ok_or_else(|| row.corrupt("key", format!("`{key}` names no run")))
        };
        Ok(rows.into_iter().map(read).collect::<Result<_, CorruptRow>>()?)
    }

    /// Whether the run is still one of those.
    pub async fn is_unparked(&self, tenant: TenantId, run: RunId) -> Result<bool, ReadError> {
        Ok(!self.rows(&sql::META_GET, args![unparked_key(tenant, run)]).await?.is_empty())
    }

    /// How many runs live in each state.
    pub async fn live_by_state(&self) -> Result<Vec<(RunState, u64)>, ReadError> {
        let rows = self.rows(&sql::LIVE_BY_STATE, vec![]).await?;
        rows.into_iter().map(|mut row| Ok((row.name("state")?, row.num("runs")?))).collect()
    }

    /// How many runs of each tenant live in each state: so many of these numbers.
    pub async fn live_by_tenant(&self, limit: usize) -> Result<Vec<(TenantId, RunState, u64)>, ReadError> {
        let rows = self.rows(&sql::LIVE_BY_TENANT, args![limit]).await?;
        rows.into_iter().map(|mut row| Ok((row.id("tenant_id")?, row.name("state")?, row.num("runs")?))).collect()
    }

    /// What decides whether a commit survives a crash of the machine.
    pub async fn durability(&self) -> Result<Vec<DurableSetting>, ReadError> {
        if matches!(self.inner.reads, Reads::Sqlite(_)) {
            // Every connection sets these when it opens, so they are what they are.
            let ours = [("journal_mode", "WAL"), ("synchronous", "FULL")];
            return Ok(ours.map(|(name, value)| DurableSetting::new(name.into(), value.into(), value)).into());
        }
        let mut settings = Vec::new();
        for mut row in self.rows(&sql::DURABILITY, vec![]).await? {
            settings.push(DurableSetting::new(row.text("name")?, row.text("setting")?, "on"));
        }
        Ok(settings)
    }

    pub async fn stats(&self) -> Result<Stats, ReadError> {
        let counters = &self.inner.counters;
        let mut stats = Stats {
            committed: counters.committed.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            groups: counters.groups.load(Ordering::Relaxed),
            queued: self.queued(),
            ..Stats::default()
        };
        if let Some(row) = self.rows(&sql::STATS, vec![]).await?.first_mut() {
            stats.live_runs = row.num("runs")?;
            stats.live_claims = row.num("claims")?;
        }
        Ok(stats)
    }
}
