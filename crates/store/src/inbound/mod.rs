//! Endpoints that take webhooks, and the deliveries that came in.

mod deliver;
mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub(crate) use deliver::begin_signal;
pub use deliver::{
    BeginDelivery, DeliveryBegun, DeliveryTaken, Fingerprint, FinishDelivery, RetakeDelivery, SignedBody,
};
pub use rows::{DeliveryRecord, DeliveryRef, DeliveryRow, InboundRow};
pub use writes::{AddInbound, ChangeInbound, RemoveInbound};
