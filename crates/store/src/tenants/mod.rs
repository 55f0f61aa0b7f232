//! Tenants with their limits.

mod begin_lock;
mod reads;
mod rows;
pub(crate) mod sql;
mod usage;
mod writes;

pub use begin_lock::begin_lock;
pub use rows::Tenant;
pub use writes::{AddTenant, ChangeTenant, PutTenant};
