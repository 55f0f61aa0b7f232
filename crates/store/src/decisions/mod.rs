//! What was decided on the actions of runs. Written with the change that it decides.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::DecisionRow;
