//! The state machines, each as one exhaustive `match (state, event)`. `decide` walks these arrows and no others;
//! the pair tables are snapshotted in tests and `docs/reference/states.md` is generated from them.

pub mod approval;
pub mod assignment;
mod meaning;
pub mod receipt;
pub mod run;
pub mod step;
