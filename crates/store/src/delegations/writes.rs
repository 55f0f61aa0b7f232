use interlock_core::ids::{DelegationId, TenantId};
use interlock_core::time::Timestamp;

use super::{DelegationRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed, changed, of_tenant, stored};

/// [`Stored::Duplicate`] where it would make a chain, or one of the two has `open_max` already.
#[derive(Debug, Clone)]
pub struct AddDelegation {
    pub row: DelegationRow,
    pub open_max: u32,
}

impl Write for AddDelegation {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.row;
        let values = args![
            row.tenant,
            row.id,
            &row.delegator,
            &row.delegate,
            row.from_at,
            row.until_at,
            &row.reason,
            row.created_at,
            &row.created_by,
            self.open_max
        ];
        stored(db, &sql::DELEGATION_ADD, values).await
    }
}

/// [`Changed::Done`] once, and [`Changed::Gone`] if it has been revoked or never was.
#[derive(Debug, Clone)]
pub struct RevokeDelegation {
    pub tenant: TenantId,
    pub delegation: DelegationId,
    pub at: Timestamp,
    pub by: String,
}

impl Write for RevokeDelegation {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::DELEGATION_REVOKE, args![self.at, &self.by, self.tenant, self.delegation]).await
    }
}

of_tenant! {
    AddDelegation.row.tenant;
    RevokeDelegation.tenant;
}
