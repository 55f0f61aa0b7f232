//! Endpoints to which a tenant's events are sent, and the log of tries.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{AttemptRow, MessageRow, NewMessage, OutboundRow, destination};
pub use writes::{
    AddOutbound, ChangeOutbound, DisableOutbound, LogAttempt, PublishMessages, RemoveOutbound, ReplayMessages,
};
