//! API keys. Lookups by what a request brings stand on indexes that begin with it: which tenant it belongs to is what they
//! find out.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::KeyRow;
pub(crate) use writes::BOOTSTRAPPED;
pub use writes::{AddFirstKey, AddKey, KeyRotated, RevokeKey, RotateKey, TouchKey};
