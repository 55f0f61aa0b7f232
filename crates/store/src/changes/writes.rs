use interlock_core::ids::{ChangeId, TenantId};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{ChangeRow, ChangeState, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed, changed, json_list, of_tenant, stored};

#[derive(Debug, Clone)]
pub struct AskChange(pub ChangeRow);

impl Write for AskChange {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let values = args![
            row.tenant,
            row.id,
            &row.subject,
            &row.method,
            &row.path,
            row.body.as_str(),
            row.request_hash,
            row.state.as_str(),
            &row.asked_by,
            json_list(&row.excluded)?,
            row.asked_at,
            row.expires_at
        ];
        stored(db, &sql::CHANGE_ADD, values).await
    }
}

/// [`Changed::Done`] once, and [`Changed::Gone`] where it was decided before or has expired.
#[derive(Debug, Clone)]
pub struct DecideChange {
    pub tenant: TenantId,
    pub change: ChangeId,
    /// Approved or rejected.
    pub state: ChangeState,
    pub by: String,
    pub at: Timestamp,
    pub notes: Option<String>,
    /// Until when it can be carried out.
    pub until: Timestamp,
}

impl Write for DecideChange {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values =
            args![self.state.as_str(), &self.by, self.at, self.notes.as_ref(), self.until, self.tenant, self.change];
        changed(db, &sql::CHANGE_DECIDE, values).await
    }
}

/// [`Changed::Done`] for the one request that carries it out.
#[derive(Debug, Clone, Copy)]
pub struct UseChange {
    pub tenant: TenantId,
    pub change: ChangeId,
    pub request: Hash,
    pub at: Timestamp,
}

impl Write for UseChange {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        changed(db, &sql::CHANGE_USE, args![self.at, self.tenant, self.change, self.request]).await
    }
}

of_tenant! {
    AskChange.0.tenant;
    DecideChange.tenant;
    UseChange.tenant;
}
