//! What steps write while they run. It belongs to a run, but to no change of it: chunks are stored beside the journal, for the
//! attempt that is the current one, and go when the run does.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{OutputHead, OutputPlace, OutputRow};
pub use writes::{AppendOutput, OutputAppended};
