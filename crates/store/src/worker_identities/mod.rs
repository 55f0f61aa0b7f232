//! Workers that enrol by a token and have certificates from then on.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::WorkerIdentityRow;
pub use writes::{AddWorkerIdentity, EnrolWorker, RenewWorker, RevokeWorkerIdentity};
