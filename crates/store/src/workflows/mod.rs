//! Workflows and their versions.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{WorkflowRow, WorkflowVersionRow, WorkflowVersionSummary};
pub use writes::{PutWorkflow, SetWorkflowDisabled};
