//! How the process ends: one number for each thing that a script can react to, after BSD's sysexits.

use std::fmt;
use std::process::ExitCode;

/// The exit codes, as `docs/reference/cli.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// What was asked about did not succeed: a run that was waited for failed, a check found something.
    Unsuccessful = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The server refused the request: invalid, or it does not apply now.
    Refused = 65,
    /// The thing that was named does not exist.
    NotFound = 66,
    /// The server cannot be reached, or cannot answer right now.
    Unavailable = 69,
    /// Something unexpected went wrong, here or in an answer of the server.
    Internal = 70,
    /// `--timeout` has passed, or the server asked to come back later.
    TryLater = 75,
    /// There is no login, or the one there is may not do this.
    NotPermitted = 77,
    /// A config file, a context or a credential file is wrong.
    Config = 78,
    /// Ctrl-C.
    Interrupted = 130,
}

impl Exit {
    /// All of them with what they mean, for the reference page.
    pub const ALL: &'static [(Self, &'static str)] = &[
        (
            Self::Unsuccessful,
            "what was asked about did not succeed: a run that was waited for failed or was canceled, a check found something",
        ),
        (Self::Usage, "the command line is wrong"),
        (Self::Refused, "the server refused the request: it is invalid, or does not apply now"),
        (Self::NotFound, "the thing that was named does not exist"),
        (Self::Unavailable, "the server cannot be reached, or cannot answer right now"),
        (Self::Internal, "something unexpected went wrong, here or in an answer of the server"),
        (Self::TryLater, "`--timeout` has passed, or the server asked to come back later"),
        (Self::NotPermitted, "not logged in, or the credential does not permit this"),
        (Self::Config, "a config file, a context or a credential file is wrong"),
        (Self::Interrupted, "interrupted by Ctrl-C"),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An end with its exit code and what to print, if anything is left to say.
#[derive(Debug)]
pub struct ExitError {
    pub exit: Exit,
    pub message: Option<String>,
}

impl ExitError {
    /// Everything has been said already.
    pub fn silently(exit: Exit) -> anyhow::Error {
        Self { exit, message: None }.into()
    }

    pub fn saying(exit: Exit, message: impl Into<String>) -> anyhow::Error {
        Self { exit, message: Some(message.into()) }.into()
    }
}

impl fmt::Display for ExitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.as_deref().unwrap_or_default())
    }
}

impl std::error::Error for ExitError {}
