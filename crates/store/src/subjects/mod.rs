//! Subjects: the run that holds one, and the runs that wait for it.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{QueuedRun, SubjectLine};
pub use writes::{SignalSubject, SubjectSignaled};
