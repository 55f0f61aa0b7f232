//! Tenants with their limits.

mod reads;
mod rows;
pub(crate) mod sql;
mod usage;

pub use rows::Tenant;
