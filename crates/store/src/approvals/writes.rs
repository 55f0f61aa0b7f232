use interlock_core::ids::{ApprovalId, TenantId};
use interlock_core::json::Json;

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed, changed, of_tenant};

/// What was there when people were asked. [`Changed::Gone`] where it was recorded already.
#[derive(Debug, Clone)]
pub struct RecordPresentState {
    pub tenant: TenantId,
    pub approval: ApprovalId,
    pub present_state: Json,
}

impl Write for RecordPresentState {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::APPROVAL_PRESENT_STATE, args![&self.present_state, self.tenant, self.approval]).await
    }
}

of_tenant! {
    RecordPresentState.tenant;
}
