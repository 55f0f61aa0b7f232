use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::HashHex;
use interlock_core::run::receipt::Receipt;

use super::{ReceiptRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    pub async fn receipts(&self, tenant: TenantId, run: RunId) -> Result<Vec<ReceiptRow>, ReadError> {
        let rows = self.rows(&sql::RECEIPTS, args![tenant, run]).await?;
        Ok(rows.into_iter().map(receipt).collect::<Result<_, _>>()?)
    }

    pub async fn receipt_by_key(&self, tenant: TenantId, key: &str) -> Result<Option<ReceiptRow>, ReadError> {
        let rows = self.rows(&sql::RECEIPT_KEYED, args![tenant, key]).await?;
        Ok(rows.into_iter().next().map(receipt).transpose()?)
    }
}

fn receipt(mut row: Row) -> Result<ReceiptRow, CorruptRow> {
    let run = row.id("run_id")?;
    let receipt = Receipt {
        id: row.id("receipt_id")?,
        position: row.num("position")?,
        iteration: row.num("iteration")?,
        attempt: row.num("attempt")?,
        key: row.text("effect_key")?,
        effect: row.name("effect")?,
        state: row.name("state")?,
        request: row.json("request")?,
        response: row.opt_json("response")?,
        intent_at: row.time("intent_at")?,
        outcome_at: row.opt_time("outcome_at")?,
        late: row.flag("late")?,
        unsettled: row.flag("unsettled")?,
        bundle: row.opt_hash("bundle")?.map(HashHex),
    };
    Ok(ReceiptRow { run, receipt })
}
