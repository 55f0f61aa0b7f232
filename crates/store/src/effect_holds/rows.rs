use interlock_core::ids::{ReceiptId, RunId};

/// The last of the holds with one identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastHold {
    pub number: u64,
    pub run: RunId,
    pub receipt: ReceiptId,
}
