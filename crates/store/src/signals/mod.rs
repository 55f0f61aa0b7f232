//! Signals that came in, and the waits for them.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{OpenWait, SignalRow, StoredSignal, Unmatched, WaitFilter, WaitRow};
