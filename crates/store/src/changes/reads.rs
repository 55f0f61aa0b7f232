use interlock_core::ids::{ChangeId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{ChangePage, ChangeRow, ChangeState, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    pub async fn change(&self, tenant: TenantId, id: ChangeId) -> Result<Option<ChangeRow>, ReadError> {
        self.found(&sql::CHANGE_GET, args![tenant, id], change).await
    }

    /// The change that the same person has asked for by the same request, and that is not over.
    pub async fn change_asked(
        &self,
        tenant: TenantId,
        request: Hash,
        by: &str,
        now: Timestamp,
    ) -> Result<Option<ChangeRow>, ReadError> {
        self.found(&sql::CHANGE_ASKED, args![tenant, request, by, now], change).await
    }

    /// Newest first.
    pub async fn changes(&self, tenant: TenantId, page: ChangePage) -> Result<Vec<ChangeRow>, ReadError> {
        let below = page.after.map_or(Value::Id([0xff; 16]), Value::from);
        let state = page.state.map_or("", ChangeState::as_str);
        let rows = self.rows(&sql::CHANGE_LIST, args![tenant, below, state, page.limit]).await?;
        Ok(rows.into_iter().map(change).collect::<Result<_, _>>()?)
    }
}

fn change(mut row: Row) -> Result<ChangeRow, CorruptRow> {
    Ok(ChangeRow {
        tenant: row.id("tenant_id")?,
        id: row.id("change_id")?,
        subject: row.text("subject")?,
        method: row.text("method")?,
        path: row.text("path")?,
        body: row.json("body")?,
        request_hash: row.hash("request_hash")?,
        state: row.name("state")?,
        asked_by: row.text("asked_by")?,
        excluded: row.decoded("excluded")?,
        asked_at: row.time("asked_at")?,
        expires_at: row.time("expires_at")?,
        decided_by: row.opt_text("decided_by")?,
        decided_at: row.opt_time("decided_at")?,
        notes: row.opt_text("notes")?,
        used_at: row.opt_time("used_at")?,
    })
}
