//! Tenants with their limits.

mod reads;
mod rows;
pub(crate) mod sql;
mod usage;
mod writes;

pub use rows::Tenant;
pub use writes::{AddTenant, ChangeTenant, PutTenant};
