//! Style as a test: what the repository has agreed on, checked like everything else.
//!
//! A [`Tree`] is the repository read into memory. A rule is a function from it to [`Finding`]s, each
//! of which says where, what, and what to write instead. `tests/repository.rs` holds the real tree
//! against every rule; the rules' own tests hold them against small planted ones.

mod finding;
mod licence;
mod markdown;
mod rust_file;
mod test_names;
mod tree;

pub mod metadata;
pub mod rules;

pub use finding::{Finding, assert_none};
pub use tree::Tree;
