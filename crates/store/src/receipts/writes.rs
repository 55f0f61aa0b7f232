use interlock_core::ids::{RunId, TenantId};
use interlock_core::run::receipt::Receipt;

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed, changed};

/// What became of an effect that an ended run left open. [`Changed::Gone`] if it was settled before, or belongs to another
/// run by now.
#[derive(Debug, Clone)]
pub struct SettleReceipt {
    pub tenant: TenantId,
    pub run: RunId,
    pub receipt: Receipt,
}

impl Write for SettleReceipt {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let receipt = &self.receipt;
        let values = args![
            receipt.state.as_str(),
            receipt.response.as_ref(),
            receipt.outcome_at,
            self.tenant,
            &receipt.key,
            receipt.id,
            self.run
        ];
        changed(db, &sql::RECEIPT_SETTLE, values).await
    }
}
