//! The pure domain of Interlock.
//!
//! [`run::Run`] is the state of one run. [`decide`] takes it with a command, what was found out beforehand, and the
//! instant, and answers with a [`run::change::ChangeSet`] or a [`rejection::Rejection`]. Nothing in here reads a clock,
//! draws a random number, waits, or talks to anything: the same inputs give the same answer.

pub mod bulk;
pub mod cost;
pub mod decide;
pub mod failpoint;
pub mod governance;
pub mod ids;
pub mod json;
pub mod keys;
pub mod limits;
pub mod machine;
pub mod plan;
pub mod planted;
pub mod private_file;
pub mod rejection;
pub mod run;
pub mod secret_name;
pub mod state;
pub mod tenant;
pub mod text;
pub mod time;
pub mod trace;
pub mod trigger;
pub mod work;
