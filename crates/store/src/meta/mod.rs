//! The store's own rows, which belong to no tenant: `meta` with its epoch and marks, lanes, and what operators ask of the
//! store itself.

pub(crate) mod partitions;
mod reads;
mod rows;
pub(crate) mod sql;
pub(crate) mod tables;
mod writes;

pub use rows::{DurableSetting, Stats};
pub(crate) use writes::KeepLanes;
pub use writes::{DropUnparked, EnsurePartitions, FinishRestore, RaiseEpoch, SetOnce};
