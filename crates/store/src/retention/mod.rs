//! Retention: what is past its time goes, a bounded batch of each kind, oldest first.

pub(crate) mod sql;
mod sweep;
pub use sweep::Sweep;
