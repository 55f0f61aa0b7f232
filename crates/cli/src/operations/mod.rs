//! What an operator looks at first: `interlock status` and `interlock queue list`.

pub mod queue;
pub mod status;
