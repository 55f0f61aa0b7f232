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
