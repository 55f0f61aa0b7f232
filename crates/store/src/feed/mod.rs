//! Events: of one run by `seq`, of a tenant by cursor. Committed groups are sealed into the tenants' feeds.

pub(crate) mod entries;
mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{EventRecord, FeedPage, TenantEvent};
