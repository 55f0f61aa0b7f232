use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Timestamp;

use super::{BundleRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Stored, Write, WriteLane, boxed, stored};

/// Records a bundle. [`Stored::Duplicate`] where the run has one with this number.
#[derive(Debug, Clone)]
pub struct PutBundle(pub BundleRow);

impl Write for PutBundle {
    type Answer = Stored;
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        let row = &self.0;
        let values = args![row.tenant, row.run, row.number, row.sha256, row.bytes, row.entries, row.made_at, &row.body];
        stored(db, &sql::BUNDLE_PUT, values).await
    }
}

/// The run's evidence is bundled, as far as it was noted by then.
#[derive(Debug, Clone, Copy)]
pub struct DropEvidenceDue {
    pub tenant: TenantId,
    pub run: RunId,
    pub noted_at: Timestamp,
}

impl Write for DropEvidenceDue {
    type Answer = ();
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        db.execute(&sql::EVIDENCE_DUE_DROP, args![self.tenant, self.run, self.noted_at]).await?;
        Ok(())
    }
}
