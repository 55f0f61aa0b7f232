//! Signals that came in, and the waits for them.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{
    OpenWait, SignalIdentity, SignalRow, SignalScope, SourceId, StoredSignal, UnmatchedSignal, WaitFilter, WaitRow,
};
pub(crate) use writes::store_signal;
pub use writes::{AnnounceSignal, SignalStored, StoreSignal};
