//! Delegations: a person's right to decide, lent to another for a time.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{DelegationPage, DelegationRow};
pub use writes::{AddDelegation, RevokeDelegation};
