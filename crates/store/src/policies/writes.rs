use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;

use super::{PolicyBundleRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed, changed, of_tenant};

/// Adds a version; it is not in force by that. [`Changed::Gone`] if another version has come first.
#[derive(Debug, Clone)]
pub struct PutPolicyBundle {
    pub tenant: TenantId,
    pub bundle: PolicyBundleRow,
}

impl Write for PutPolicyBundle {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let (tenant, new) = (self.tenant, &self.bundle.summary);
        // The upsert would make a new row with any version.
        if new.version > 1 && db.query(&sql::POLICY_GET, args![tenant]).await?.is_empty() {
            return Ok(Changed::Gone);
        }
        let values = args![tenant, new.version, new.created_at, new.created_by.as_ref()];
        if db.execute(&sql::POLICY_ADVANCE, values).await? != 1 {
            return Ok(Changed::Gone);
        }
        let (files, note, by) = (&self.bundle.files, new.note.as_ref(), new.created_by.as_ref());
        db.execute(&sql::POLICY_BUNDLE_INSERT, args![tenant, new.version, new.hash, files, note, new.created_at, by])
            .await?;
        Ok(Changed::Done)
    }
}

/// Puts versions in force, or beside. [`Changed::Gone`] if the policy was changed meanwhile, or there is no such
/// version.
#[derive(Debug, Clone)]
pub struct SetPolicy {
    pub tenant: TenantId,
    /// None is the shipped policy.
    pub active: Option<u32>,
    pub shadow: Option<u32>,
    /// As it was looked at.
    pub revision: u64,
    pub at: Timestamp,
    pub by: Option<String>,
}

impl Write for SetPolicy {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.active, self.shadow, self.at, self.by.as_ref(), self.tenant, self.revision];
        changed(db, &sql::POLICY_SET, values).await
    }
}

of_tenant! {
    PutPolicyBundle.tenant;
    SetPolicy.tenant;
}
