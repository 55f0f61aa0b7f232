//! Who refers to which payload beside the database. The objects themselves are the engine's affair; what stands here
//! says when one may go, so that nobody is left with a reference to nothing.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub(crate) use rows::{MARK, fresh_mark};
pub use rows::{PayloadHolder, PayloadOwner, PayloadRecord, PayloadRow};
pub use writes::{ForgetPayload, KeepPayload, PayloadKept, PayloadReleased, ReleasePayload};
