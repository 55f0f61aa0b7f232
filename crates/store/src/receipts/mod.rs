//! Receipts of effects.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::ReceiptRow;
pub use writes::SettleReceipt;
