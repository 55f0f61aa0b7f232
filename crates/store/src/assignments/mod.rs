//! Offers of runs to worker sessions. Written with the change that makes, answers or ends them.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::LiveAssignment;
