use interlock_core::ids::{ReceiptId, RunId};

/// One of the holds with one identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastHold {
    pub number: u64,
    pub run: RunId,
    pub receipt: ReceiptId,
}
