//! Which run or signal refers to which payload beside the database. The engine keeps the objects themselves; these rows
//! say when one may go, so that no run or signal is left with a reference to a removed object.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub(crate) use rows::{MARK, fresh_mark};
pub use rows::{PayloadHolder, PayloadOwner, PayloadRecord, PayloadRow};
pub use writes::{ForgetPayload, KeepPayload, PayloadKept, PayloadReleased, ReleasePayload};
