use super::{Tenant, begin_lock, reads, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::keys::{AddKey, KeyRow};
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed};

/// No run of a tenant that is disabled begins from here to the commit. SQLite has one writer anyway.
async fn hold_beginnings<D: Db>(db: &D, tenant: &Tenant) -> Result<(), DbError> {
    if tenant.disabled_at.is_some() && db.is_postgres() {
        db.execute(&sql::BEGIN_LOCK_ALONE, args![begin_lock(tenant.id)]).await?;
    }
    Ok(())
}

/// Makes a tenant, or changes the limits of the one with this id.
#[derive(Debug, Clone)]
pub struct PutTenant(pub Tenant);

impl Write for PutTenant {
    type Answer = ();
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        let tenant = &self.0;
        hold_beginnings(db, tenant).await?;
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

/// Changes a tenant that is still as it was read. [`Changed::Gone`] where another has changed it since, or it is not there:
/// what was decided about it meanwhile is not undone.
#[derive(Debug, Clone)]
pub struct ChangeTenant {
    pub read: Tenant,
    pub tenant: Tenant,
}

impl Write for ChangeTenant {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        hold_beginnings(db, &self.tenant).await?;
        let held = db.query(&sql::TENANT_HELD, args![self.tenant.id]).await?.pop();
        if held.map(reads::tenant).transpose()?.as_ref() != Some(&self.read) {
            return Ok(Changed::Gone);
        }
        PutTenant(self.tenant.clone()).apply(db).await?;
        Ok(Changed::Done)
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
