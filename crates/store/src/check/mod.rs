//! The check of the store, behind `db check`: rows that contradict each other.

mod reads;
mod rows;
pub(crate) mod sql;

pub(crate) use reads::LOADED_IN_PART;
pub use rows::{CheckProgress, Finding, TABLE_KEY};
