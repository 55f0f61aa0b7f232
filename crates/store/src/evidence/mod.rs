//! Evidence bundles, as rows: which runs are to be bundled, and the bundles that were made.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::BundleRow;
pub use writes::{DropEvidenceDue, PutBundle};
