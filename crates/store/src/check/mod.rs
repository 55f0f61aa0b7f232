//! The check of the store, behind `db check`: rows that contradict each other.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{CheckProgress, Finding};
