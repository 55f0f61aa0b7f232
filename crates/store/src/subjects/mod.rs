//! Subjects: the run that holds one, and the runs that wait for it.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{QueuedRun, SubjectLine};
