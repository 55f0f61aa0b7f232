//! Workflows and their versions.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary};
