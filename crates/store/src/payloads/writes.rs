use interlock_core::ids::TenantId;
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;

use super::{MARK, PayloadRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::meta;
use crate::op::OpAnswer;
use crate::value::args;

#[derive(Debug, Clone, Copy)]
pub enum PayloadOp {
    /// Before the object is written and the owner is committed. Answers [`OpAnswer::Stored`], or
    /// [`OpAnswer::InFlight`] while the object is being removed.
    Keep { row: PayloadRow, bytes: u64, at: Timestamp },
    /// The owner is gone, and has not come back since `before`. Answers [`OpAnswer::Done`] if others refer to the
    /// object, [`OpAnswer::Gone`] if nobody does: then it is removed, and forgotten; [`OpAnswer::Recent`] if it was
    /// kept again.
    Release { row: PayloadRow, before: Timestamp },
    /// The object is removed.
    Forget { tenant: TenantId, sha256: Hash },
}

pub(crate) async fn apply<D: Db>(db: &D, op: &PayloadOp) -> Result<OpAnswer, DbError> {
    // One at a time over all servers: a reference that is being added and an object that is going must see each other.
    db.query(&meta::sql::META_LOCK, args![MARK]).await?;
    match *op {
        PayloadOp::Keep { row: PayloadRow { tenant, owner, sha256 }, bytes, at } => {
            if !db.query(&sql::PAYLOAD_SWEEPING, args![tenant, sha256]).await?.is_empty() {
                return Ok(OpAnswer::InFlight);
            }
            db.execute(&sql::PAYLOAD_KEEP, args![tenant, owner, sha256, bytes, at]).await?;
            Ok(OpAnswer::Stored)
        }
        PayloadOp::Release { row: PayloadRow { tenant, owner, sha256 }, before } => {
            let shared = !db.query(&sql::PAYLOAD_SHARED, args![tenant, sha256, owner]).await?.is_empty();
            let stmt = if shared { &sql::PAYLOAD_DROP } else { &sql::PAYLOAD_MARK };
            let rows = db.execute(stmt, args![tenant, owner, sha256, before]).await?;
            Ok(match (rows, shared) {
                (0, _) => OpAnswer::Recent,
                (_, true) => OpAnswer::Done,
                (_, false) => OpAnswer::Gone,
            })
        }
        PayloadOp::Forget { tenant, sha256 } => {
            db.execute(&sql::PAYLOAD_FORGET, args![tenant, sha256]).await?;
            Ok(OpAnswer::Done)
        }
    }
}
