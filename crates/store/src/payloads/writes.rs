use interlock_core::ids::TenantId;
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{MARK, PayloadRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::meta;
use crate::value::args;
use crate::write::{Write, WriteLane, boxed};

/// What became of a reference that was to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadKept {
    Kept,
    /// The object is being removed.
    BeingRemoved,
}

/// What became of a reference whose owner is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadReleased {
    /// Other owners refer to the object.
    Shared,
    /// No other owner does: it is to be removed, and forgotten.
    Last,
    /// It was kept again.
    KeptAgain,
}

/// Records a reference, before the object is written and the owner is committed.
#[derive(Debug, Clone, Copy)]
pub struct KeepPayload {
    pub row: PayloadRow,
    pub bytes: u64,
    pub at: Timestamp,
}

impl Write for KeepPayload {
    type Answer = PayloadKept;
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<PayloadKept, DbError> {
        take_turn(db).await?;
        let PayloadRow { tenant, owner, sha256 } = self.row;
        if !db.query(&sql::PAYLOAD_SWEEPING, args![tenant, sha256]).await?.is_empty() {
            return Ok(PayloadKept::BeingRemoved);
        }
        db.execute(&sql::PAYLOAD_KEEP, args![tenant, owner, sha256, self.bytes, self.at]).await?;
        Ok(PayloadKept::Kept)
    }
}

/// The owner is gone, and has not come back since `before`.
#[derive(Debug, Clone, Copy)]
pub struct ReleasePayload {
    pub row: PayloadRow,
    pub before: Timestamp,
}

impl Write for ReleasePayload {
    type Answer = PayloadReleased;
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<PayloadReleased, DbError> {
        take_turn(db).await?;
        let PayloadRow { tenant, owner, sha256 } = self.row;
        let shared = !db.query(&sql::PAYLOAD_SHARED, args![tenant, sha256, owner]).await?.is_empty();
        let stmt = if shared { &sql::PAYLOAD_DROP } else { &sql::PAYLOAD_MARK };
        let rows = db.execute(stmt, args![tenant, owner, sha256, self.before]).await?;
        Ok(match (rows, shared) {
            (0, _) => PayloadReleased::KeptAgain,
            (_, true) => PayloadReleased::Shared,
            (_, false) => PayloadReleased::Last,
        })
    }
}

/// The object is removed.
#[derive(Debug, Clone, Copy)]
pub struct ForgetPayload {
    pub tenant: TenantId,
    pub sha256: Hash,
}

impl Write for ForgetPayload {
    type Answer = ();
    const LANE: WriteLane = WriteLane::Upkeep;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        take_turn(db).await?;
        db.execute(&sql::PAYLOAD_FORGET, args![self.tenant, self.sha256]).await?;
        Ok(())
    }
}

/// One at a time over all servers: a reference that is being added and an object that is going must see each other.
async fn take_turn<D: Db>(db: &D) -> Result<(), DbError> {
    db.query(&meta::sql::META_LOCK, args![MARK]).await?;
    Ok(())
}
