//! Events: of one run by `seq`, of a tenant by cursor. Committed groups are sealed into the tenants' feeds.

pub(crate) mod entries;
mod reads;
mod rows;
mod seal;
pub(crate) mod sql;

pub use rows::{EventRecord, FeedPage, TenantEvent};
pub use seal::Seal;
