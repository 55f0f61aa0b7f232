use interlock_core::ids::TenantId;
use interlock_core::json::Hash;

use super::{PastHold, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// The holders of an effect before the hold of this number, newest first; with `None` from its last or present one.
    pub async fn holds_before(
        &self,
        tenant: TenantId,
        identity: Hash,
        number: Option<u64>,
        limit: u32,
    ) -> Result<Vec<PastHold>, ReadError> {
        let before = number.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
        let rows = self.rows(&sql::HOLDS_BEFORE, args![tenant, identity, before, limit]).await?;
        Ok(rows.into_iter().map(past_hold).collect::<Result<_, _>>()?)
    }
}

fn past_hold(mut row: Row) -> Result<PastHold, CorruptRow> {
    Ok(PastHold { number: row.num("number")?, run: row.id("run_id")?, receipt: row.id("receipt_id")? })
}
