//! Colours: on terminals, unless a flag or the environment says otherwise; not in pipes.

use std::env;
use std::fmt::Display;

use clap::ValueEnum;
use interlock_core::state::{RunState, StepState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    pub fn paint(self, terminal: bool) -> Paint {
        Paint { on: self.decide(terminal, |name| env::var(name).ok()) }
    }

    /// A flag beats the environment; NO_COLOR beats whatever asks for colours; the terminal decides the rest.
    fn decide(self, terminal: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto if is_set("NO_COLOR") => false,
            Self::Auto if variable("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0") => true,
            Self::Auto if variable("CLICOLOR").as_deref() == Some("0") => false,
            Self::Auto => terminal && variable("TERM").as_deref() != Some("dumb"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
    Careful,
    Busy,
    Dim,
    Bold,
}

/// Puts colours around words, or leaves them alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    pub const OFF: Self = Self { on: false };
    #[cfg(test)]
    pub const ON: Self = Self { on: true };

    pub const fn is_on(self) -> bool {
        self.on
    }

    pub fn tone(self, tone: Tone, text: impl Display) -> String {
        let start = match tone {
            _ if !self.on => "",
            Tone::Plain => "",
            Tone::Good => "\x1b[32m",
            Tone::Bad => "\x1b[31m",
            Tone::Careful => "\x1b[33m",
            Tone::Busy => "\x1b[36m",
            Tone::Dim => "\x1b[2m",
            Tone::Bold => "\x1b[1m",
        };
        if start.is_empty() { text.to_string() } else { format!("{start}{text}\x1b[0m") }
    }

    pub fn bold(self, text: impl Display) -> String {
        self.tone(Tone::Bold, text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.tone(Tone::Dim, text)
    }
}

pub const fn run_tone(state: RunState) -> Tone {
    match state {
        RunState::Succeeded => Tone::Good,
        RunState::Failed => Tone::Bad,
        RunState::Paused | RunState::RollingBack | RunState::WaitingApproval => Tone::Careful,
        RunState::Running => Tone::Busy,
        RunState::WaitingSignal | RunState::Pending => Tone::Plain,
        RunState::Canceled => Tone::Dim,
    }
}

pub const fn step_tone(state: StepState) -> Tone {
    match state {
        StepState::Succeeded => Tone::Good,
        StepState::Failed | StepState::InDoubt => Tone::Bad,
        StepState::WaitingApproval | StepState::RolledBack => Tone::Careful,
        StepState::Running => Tone::Busy,
        StepState::Ready | StepState::WaitingSignal => Tone::Plain,
        StepState::Pending | StepState::Skipped | StepState::Canceled => Tone::Dim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_then_no_color_then_clicolor_then_the_terminal() {
        let decide = |choice: ColorChoice, terminal, set: &[(&str, &str)]| {
            choice
                .decide(terminal, |name| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(decide(ColorChoice::Auto, true, &[]));
        assert!(!decide(ColorChoice::Auto, false, &[]));
        assert!(!decide(ColorChoice::Auto, true, &[("NO_COLOR", "1")]));
        assert!(decide(ColorChoice::Auto, true, &[("NO_COLOR", "")]), "an empty NO_COLOR says nothing");
        assert!(!decide(ColorChoice::Auto, true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
        assert!(decide(ColorChoice::Auto, false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!decide(ColorChoice::Auto, true, &[("CLICOLOR", "0")]));
        assert!(!decide(ColorChoice::Auto, true, &[("TERM", "dumb")]));
        assert!(decide(ColorChoice::Always, false, &[("NO_COLOR", "1")]));
        assert!(!decide(ColorChoice::Never, true, &[("CLICOLOR_FORCE", "1")]));
    }
}
