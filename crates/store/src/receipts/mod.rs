//! Receipts of effects.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::ReceiptRow;
