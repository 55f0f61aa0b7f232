use interlock_core::ids::TenantId;
use interlock_core::json::Hash;

use super::{LastHold, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// Who had an effect last, or has it.
    pub async fn last_hold(&self, tenant: TenantId, identity: Hash) -> Result<Option<LastHold>, ReadError> {
        let rows = self.rows(&sql::LAST_HOLD, args![tenant, identity]).await?;
        Ok(rows.into_iter().next().map(last_hold).transpose()?)
    }
}

fn last_hold(mut row: Row) -> Result<LastHold, CorruptRow> {
    Ok(LastHold { number: row.num("number")?, run: row.id("run_id")?, receipt: row.id("receipt_id")? })
}
