//! The rules that tenants have given: versions that stay, and which of them is in force.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{PolicyBundleRow, PolicyBundleSummary, PolicyRow};
pub use writes::{PutPolicyBundle, SetPolicy};
