//! What an operator looks at first: `interlock status`, `interlock health` and `interlock queue list`.

pub mod health;
pub mod queue;
pub mod status;
