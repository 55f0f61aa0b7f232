//! Which run has an effect that counts as the same in the whole tenant (`dedupe: tenant`).

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::PastHold;
