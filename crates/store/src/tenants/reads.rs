use interlock_core::ids::TenantId;
use interlock_core::tenant::caps::Caps;

use super::{Tenant, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    pub async fn tenants(&self) -> Result<Vec<Tenant>, ReadError> {
        self.readable(&sql::TENANTS, 0, |_| vec![], tenant).await
    }

    /// The only tenant that is not disabled or, where all are, the only one at all. `None` where there are several.
    pub async fn sole_tenant(&self) -> Result<Option<TenantId>, ReadError> {
        let answers = self.rows_many(vec![(&sql::TENANTS_ENABLED, args![]), (&sql::TENANTS_ANY, args![])]).await?;
        let mut found = answers.into_iter().find(|rows| !rows.is_empty()).unwrap_or_default();
        match (found.pop(), found.is_empty()) {
            (Some(mut row), true) => Ok(Some(row.id("tenant_id")?)),
            _ => Ok(None),
        }
    }

    pub async fn tenant(&self, id: TenantId) -> Result<Option<Tenant>, ReadError> {
        let rows = self.rows(&sql::TENANT_GET, args![id]).await?;
        Ok(rows.into_iter().next().map(tenant).transpose()?)
    }

    pub async fn tenant_by_name(&self, name: &str) -> Result<Option<Tenant>, ReadError> {
        let rows = self.rows(&sql::TENANT_NAMED, args![name]).await?;
        Ok(rows.into_iter().next().map(tenant).transpose()?)
    }
}

pub(super) fn tenant(mut row: Row) -> Result<Tenant, CorruptRow> {
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
