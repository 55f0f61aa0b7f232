//! API keys. Lookups by what a request brings stand on indexes that begin with it: which tenant it belongs to is what they
//! find out.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::KeyRow;
