//! What a command runs: code among its arguments, the programs that it starts, and the variables that it sets. Read out of the
//! arguments by lists of programs; nothing is started, and no file is looked at unless the caller says what a name leads to. The
//! policy judges by this what an action is, and a worker's rules what may run.
//!
//! [`StartedCommands::of`] reads a command. Interpreters with code behind an option, and options by which a program runs another
//! command, are in `code`; what is started plainly, such as `timeout 5 …`, in `started`; variables in `variables`. What is known of
//! programs are the lists in `interpreters`, `programs`, `harmless`, `starters` and `own_options`.

mod code;
mod harmless;
mod interpreters;
mod names;
mod own_options;
mod programs;
mod started;
mod starters;
mod values;
mod variables;
mod words;

pub use code::InlineCode;
pub use names::last_part;
pub use started::StartedCommands;
pub use variables::{all_change_code, changes_code};
