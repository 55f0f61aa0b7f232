//! Endpoints that take webhooks, and the deliveries that came in.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{DeliveryRecord, DeliveryRef, DeliveryRow, InboundRow};
