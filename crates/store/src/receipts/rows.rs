use interlock_core::ids::RunId;
use interlock_core::run::receipt::Receipt;

/// A receipt with the run it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptRow {
    pub run: RunId,
    pub receipt: Receipt,
}
