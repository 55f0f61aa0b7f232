use interlock_core::ids::{DelegationId, TenantId};
use interlock_core::time::Timestamp;

use super::{DelegationPage, DelegationRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    pub async fn delegation(&self, tenant: TenantId, id: DelegationId) -> Result<Option<DelegationRow>, ReadError> {
        self.found(&sql::DELEGATION_GET, args![tenant, id], delegation).await
    }

    /// Newest first.
    pub async fn delegations(&self, tenant: TenantId, page: DelegationPage) -> Result<Vec<DelegationRow>, ReadError> {
        let below = page.after.map_or(Value::Id([0xff; 16]), Value::from);
        let args = args![tenant, below, page.over_by, page.limit];
        let rows = self.rows(&sql::DELEGATION_LIST, args).await?;
        Ok(rows.into_iter().map(delegation).collect::<Result<_, _>>()?)
    }

    /// What holds at `now` of what a person has lent, and of what was lent to them.
    pub async fn delegations_of(
        &self,
        tenant: TenantId,
        person: &str,
        now: Timestamp,
    ) -> Result<(Vec<DelegationRow>, Vec<DelegationRow>), ReadError> {
        let find = async |stmt| -> Result<Vec<DelegationRow>, ReadError> {
            let rows = self.rows(stmt, args![tenant, person, now]).await?;
            Ok(rows.into_iter().map(delegation).collect::<Result<_, _>>()?)
        };
        Ok((find(&sql::DELEGATIONS_BY).await?, find(&sql::DELEGATIONS_TO).await?))
    }
}

fn delegation(mut row: Row) -> Result<DelegationRow, CorruptRow> {
    Ok(DelegationRow {
        tenant: row.id("tenant_id")?,
        id: row.id("delegation_id")?,
        delegator: row.text("delegator")?,
        delegate: row.text("delegate")?,
        from_at: row.time("from_at")?,
        until_at: row.time("until_at")?,
        reason: row.text("reason")?,
        created_at: row.time("created_at")?,
        created_by: row.text("created_by")?,
        revoked_at: row.opt_time("revoked_at")?,
        revoked_by: row.opt_text("revoked_by")?,
    })
}
