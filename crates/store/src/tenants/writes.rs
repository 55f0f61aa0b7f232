use super::{Tenant, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::keys::{AddKey, KeyRow};
use crate::value::args;
use crate::write::{Stored, Write, boxed};

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

/// Makes a tenant together with the key of its first admin. [`Stored::Duplicate`] where the key's text was made before.
#[derive(Debug, Clone)]
pub struct AddTenant {
    pub tenant: Tenant,
    pub key: KeyRow,
}

impl Write for AddTenant {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let answer = AddKey(self.key.clone()).apply(db).await?;
        if answer == Stored::Stored {
            PutTenant(self.tenant.clone()).apply(db).await?;
        }
        Ok(answer)
    }
}
