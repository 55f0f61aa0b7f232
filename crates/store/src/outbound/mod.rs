//! Endpoints to which a tenant's events are sent, and the log of tries.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{AttemptRow, MessageRow, NewMessage, OutboundRow, destination};
