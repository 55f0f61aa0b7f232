use interlock_core::ids::{SignalId, TenantId};
use interlock_core::time::Timestamp;

use super::{OpenWait, SignalIdentity, SourceId, StoredSignal, UnmatchedSignal, WaitFilter, WaitRow, sql};
use crate::error::ReadError;
use crate::sql::Stmt;
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// The signal that stands under a name.
    pub async fn signal_named(&self, tenant: TenantId, source: &SourceId) -> Result<Option<SignalId>, ReadError> {
        let values = args![tenant, source.scope.text(), &source.name];
        self.found(&sql::SIGNAL_OF_NAME, values, |mut row| row.id("signal_id")).await
    }

    /// Whether a signal that says the same stands under the name.
    pub async fn has_signal(&self, tenant: TenantId, identity: &SignalIdentity) -> Result<bool, ReadError> {
        let SignalIdentity { source, fingerprint } = identity;
        let values = args![tenant, source.scope.text(), &source.name];
        let standing = self.found(&sql::SIGNAL_NAMED, values, |mut row| row.opt_hash("fingerprint")).await?;
        Ok(standing.flatten() == Some(*fingerprint))
    }

    /// Whether a server of an earlier release has stored a signal under this name.
    pub async fn was_named_before(&self, tenant: TenantId, name: &str) -> Result<bool, ReadError> {
        Ok(!self.rows(&sql::SIGNAL_NAMED_BEFORE, args![tenant, name]).await?.is_empty())
    }

    /// Signals that no run has consumed and that came at this instant or later, oldest first.
    pub async fn pending_signals(
        &self,
        tenant: TenantId,
        signal_type: &str,
        key: &str,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<StoredSignal>, ReadError> {
        let rows = self.rows(&sql::SIGNALS_PENDING, args![tenant, signal_type, key, from, limit]).await?;
        rows.into_iter().map(stored_signal).collect()
    }

    /// The same for one run: without those for another run alone, and broadcasts that it has had.
    pub async fn unheard_signals(
        &self,
        wait: &OpenWait,
        (tenant, signal_type, key): (TenantId, &str, &str),
        limit: usize,
    ) -> Result<Vec<StoredSignal>, ReadError> {
        let values = args![tenant, signal_type, key, wait.accept_from, wait.run, limit];
        self.rows(&sql::SIGNALS_UNHEARD, values).await?.into_iter().map(stored_signal).collect()
    }

    /// Keys that have both an unconsumed signal and an open wait that accepts it.
    pub async fn unmatched(&self, limit: usize) -> Result<Vec<UnmatchedSignal>, ReadError> {
        let read = |mut row: Row| {
            Ok(UnmatchedSignal { tenant: row.id("tenant_id")?, signal_type: row.text("type")?, key: row.text("key")? })
        };
        self.readable(&sql::UNMATCHED, limit, |limit| args![limit], read).await
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
        let rows = self.rows(&sql::WAITS_OPEN, args![tenant, signal_type, key, opened_at, run, limit]).await?;
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

    /// Open waits by type and key, after the last one of the page before.
    pub async fn list_waits(
        &self,
        tenant: TenantId,
        filter: &WaitFilter,
        after: Option<&WaitRow>,
        limit: usize,
    ) -> Result<Vec<WaitRow>, ReadError> {
        let signal_type = filter.signal_type.as_deref().or(after.map(|wait| wait.signal_type.as_str())).unwrap_or("");
        let key = filter.key.as_deref().or(after.map(|wait| wait.key.as_str())).unwrap_or("");
        let opened_at = after.map_or(Timestamp(i64::MIN), |wait| wait.opened_at);
        let run = after.map_or(Value::Id([0; 16]), |wait| wait.run.into());
        let stmt: &'static Stmt = match (&filter.signal_type, &filter.key) {
            (Some(_), Some(_)) => &sql::WAITS_OF_KEY,
            (Some(_), None) => &sql::WAITS_OF_TYPE,
            (None, _) => &sql::WAITS_LIST,
        };
        let workspace = filter.workspace.as_deref().unwrap_or("");
        let rows = self.rows(stmt, args![tenant, signal_type, key, opened_at, run, workspace, limit]).await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(WaitRow {
                    run: row.id("run_id")?,
                    position: row.num("position")?,
                    signal_type: row.text("type")?,
                    key: row.text("key")?,
                    accept_from: row.time("accept_from")?,
                    opened_at: row.time("opened_at")?,
                    plan: row.opt_hash("plan_hash")?,
                })
            })
            .collect()
    }
}

fn stored_signal(mut row: Row) -> Result<StoredSignal, ReadError> {
    Ok(StoredSignal {
        id: row.id("signal_id")?,
        received_at: row.time("received_at")?,
        payload: row.json("payload")?,
        broadcast: row.flag("broadcast")?,
        run: row.opt_id("run_id")?,
    })
}
