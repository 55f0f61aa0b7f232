//! How the kinds of work are carried out: user code in this process ([`task`]), and a local program ([`program`]).

mod process;
pub mod program;
pub(crate) mod task;
