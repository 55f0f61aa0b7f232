//! Changes of the rules or of who has access that a second admin must agree to.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{ChangePage, ChangeRow, ChangeState};
pub use writes::{AskChange, DecideChange, UseChange};
