use interlock_core::ids::{InboundId, TenantId};

use super::{InboundRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::secrets::secret_values;
use crate::value::args;
use crate::write::{Changed, Stored, Write, boxed, changed, stored};

/// [`Stored::Duplicate`] where the name is taken.
#[derive(Debug, Clone)]
pub struct AddInbound(pub InboundRow);

impl Write for AddInbound {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let mut values =
            args![row.tenant, row.id, &row.name, row.source.as_str(), row.header.as_ref(), row.secondary, row.paused];
        values.extend(secret_values(&row.secrets));
        values.extend(args![row.created_at, row.created_by.as_ref(), row.secret_by.as_ref()]);
        stored(db, &sql::INBOUND_ADD, values).await
    }
}

/// Secrets and switches of an address that is still as it was read. [`Changed::Gone`] where another has changed it since, or
/// it is not there.
#[derive(Debug, Clone)]
pub struct ChangeInbound {
    pub read: InboundRow,
    pub row: InboundRow,
}

impl Write for ChangeInbound {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { read, row } = self;
        let mut values = args![row.header.as_ref(), row.secondary, row.paused];
        values.extend(secret_values(&row.secrets));
        values.extend(args![row.secret_by.as_ref(), row.tenant, row.id]);
        values.extend(args![&read.secrets.current, read.secondary, read.paused]);
        changed(db, &sql::INBOUND_CHANGE, values).await
    }
}

#[derive(Debug, Clone, Copy)]
pub struct RemoveInbound {
    pub tenant: TenantId,
    pub endpoint: InboundId,
}

impl Write for RemoveInbound {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        db.execute(&sql::INBOUND_DELIVERIES_REMOVE, args![self.tenant, self.endpoint]).await?;
        db.execute(&sql::INBOUND_FINGERPRINTS_REMOVE, args![self.tenant, self.endpoint]).await?;
        changed(db, &sql::INBOUND_REMOVE, args![self.tenant, self.endpoint]).await
    }
}
