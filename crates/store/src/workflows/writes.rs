use interlock_core::ids::TenantId;
use interlock_core::time::Timestamp;

use super::{WorkflowVersionRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed, changed};

/// Adds a version to a workflow; its number follows the latest one. [`Changed::Gone`] if another version has come first.
#[derive(Debug, Clone)]
pub struct PutWorkflow {
    pub tenant: TenantId,
    pub version: WorkflowVersionRow,
}

impl Write for PutWorkflow {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let (tenant, new) = (self.tenant, &self.version);
        // The upsert would make a new name with any version.
        if new.version > 1 && db.query(&sql::WORKFLOW_HEAD, args![tenant, &new.name]).await?.is_empty() {
            return Ok(Changed::Gone);
        }
        let values = args![tenant, &new.name, new.version, new.created_at];
        if db.execute(&sql::WORKFLOW_ADVANCE, values).await? != 1 {
            return Ok(Changed::Gone);
        }
        let values = args![
            tenant,
            &new.name,
            new.version,
            &new.source,
            new.source_hash,
            &new.definition,
            new.plan_hash,
            new.created_at,
            new.created_by.as_ref()
        ];
        db.execute(&sql::WORKFLOW_VERSION_INSERT, values).await?;
        Ok(Changed::Done)
    }
}

#[derive(Debug, Clone)]
pub struct SetWorkflowDisabled {
    pub tenant: TenantId,
    pub name: String,
    pub disabled: bool,
    pub at: Timestamp,
}

impl Write for SetWorkflowDisabled {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let state = if self.disabled { "disabled" } else { "active" };
        changed(db, &sql::WORKFLOW_STATE, args![state, self.at, self.tenant, &self.name]).await
    }
}
