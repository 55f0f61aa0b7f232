//! What an operator looks at first: `interlock status`, `interlock health` and `interlock queue list`; and the way back,
//! `interlock backout`.

pub mod backout;
mod doubts;
pub mod health;
pub mod queue;
pub mod status;
