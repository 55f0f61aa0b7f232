//! How the kinds of work are carried out: user code in this process ([`task`]), a local program ([`program`]), and calls
//! to other systems ([`connector`]).

pub mod connector;
mod process;
pub mod program;
pub(crate) mod task;
