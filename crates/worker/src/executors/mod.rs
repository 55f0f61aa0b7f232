//! How the kinds of work are carried out: user code in this process ([`task`]), a local program ([`program`]), calls to
//! other systems ([`connector`]), and sandboxed commands ([`command`]).

pub mod command;
pub mod connector;
pub(crate) mod cost_file;
mod credentials;
mod process;
pub mod program;
mod proof;
mod stderr;
pub(crate) mod task;

/// `EX_DATAERR`: a program says that the same input would fail again.
const EXIT_DATAERR: i32 = 65;
/// `EX_TEMPFAIL` of sysexits.h: a program says that it changed nothing, and may be tried again.
const EXIT_TEMPFAIL: i32 = 75;
