//! Questions before something is done that cannot be taken back.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;

use crate::output::ask_aside;
use crate::output::exit::{Exit, ExitError};

/// For verbs that remove or revoke: a person at a terminal is asked, a script is believed.
#[derive(Debug, Clone, Copy, Args)]
pub struct ConfirmArgs {
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

impl ConfirmArgs {
    pub fn ask(self, question: &str) -> anyhow::Result<()> {
        if self.yes || !io::stdin().is_terminal() { Ok(()) } else { answered(question) }
    }
}

/// For directives to runs: a script, too, has to say `--yes`.
pub fn confirm(yes: bool, question: &str) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(ExitError::saying(
            Exit::Usage,
            "this needs a confirmation, and there is no terminal to ask on; give --yes to go ahead",
        ));
    }
    answered(question)
}

fn answered(question: &str) -> anyhow::Result<()> {
    ask_aside(&format!("{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(ExitError::saying(Exit::Unsuccessful, "nothing was done"))
}
