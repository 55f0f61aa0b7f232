use super::{Tenant, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Write, boxed};

/// Makes a tenant, or changes the limits of the one with this id.
#[derive(Debug, Clone)]
pub struct PutTenant(pub Tenant);

impl Write for PutTenant {
    type Answer = ();
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        let tenant = &self.0;
        let settings = serde_json::to_string(&tenant.settings).map_err(|error| DbError::Other(error.to_string()))?;
        let values = args![
            tenant.id,
            &tenant.name,
            tenant.caps.max_concurrency,
            tenant.caps.max_runs_per_min,
            tenant.pending_runs_max,
            tenant.weight,
            tenant.created_at,
            settings,
            tenant.disabled_at
        ];
        db.execute(&sql::TENANT_PUT, values).await?;
        Ok(())
    }
}
