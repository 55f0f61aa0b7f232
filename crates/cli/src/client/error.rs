//! What can go wrong between the command line and a server, and what to try then.

use std::fmt::Write as _;

use interlock_core::text::visible::visible;
use interlock_protocol::problem::{Problem, RECORD_UNREADABLE};

use super::local::{self, LocalServer};
use crate::output::exit::Exit;
use crate::output::indented_lines;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no server answers at {server} ({what})")]
    Unreachable { server: String, loopback: bool, what: String },
    #[error("the server at {server} took too long to answer")]
    TimedOut { server: String },
    /// The request was on its way: whether it was carried out is not known.
    #[error("the connection to {server} broke off before the answer came ({what})")]
    Lost { server: String, what: String },
    #[error("{}", told(problem))]
    Refused { server: String, had_credential: bool, problem: Box<Problem> },
    /// An earlier try of the same request was on its way, and its answer did not come: whether it was carried out is not
    /// known. This is what became of the last one.
    #[error("{0}")]
    AfterLost(Box<ClientError>),
    /// Something between the client and the server answered, or what answers is no Interlock server.
    #[error("{server} answered {status}, but not like an Interlock server: {}", visible(text))]
    Foreign { server: String, status: u16, text: String },
    #[error("the answer of {server} cannot be read: {what}")]
    Unreadable { server: String, what: String },
    /// A whole answer in which something is not known here: the server is of another version.
    #[error(
        "the answer of {server} has something that this command line does not know ({}); {}",
        visible(what),
        indented_lines(answer, 2)
    )]
    Unknown { server: String, what: String, answer: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Setup(String),
}

/// The problem: what the server says, with its own line breaks, and the code to look it up by.
fn told(problem: &Problem) -> String {
    format!("{} ({})", indented_lines(&problem.detail, 2), visible(&problem.code))
}

impl ClientError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreachable { .. } | Self::Lost { .. } => Exit::Unavailable,
            Self::TimedOut { .. } => Exit::TryLater,
            Self::Refused { problem, .. } if problem.code == RECORD_UNREADABLE => Exit::Internal,
            Self::Refused { problem, .. } => match problem.status {
                401 | 403 => Exit::NotPermitted,
                404 => Exit::NotFound,
                408 | 425 | 429 => Exit::TryLater,
                500.. => Exit::Unavailable,
                _ => Exit::Refused,
            },
            Self::AfterLost(last) => last.exit(),
            Self::Foreign { .. } | Self::Unreadable { .. } | Self::Unknown { .. } | Self::Setup(_) => Exit::Internal,
        }
    }

    /// The status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { problem, .. } => Some(problem.status),
            Self::Foreign { status, .. } => Some(*status),
            Self::AfterLost(last) => last.status(),
            _ => None,
        }
    }

    /// Whether the connection, not the request, is at fault: trying again may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Lost { .. } => true,
            Self::Refused { problem, .. } => problem.is_transient(),
            Self::Foreign { status, .. } => *status >= 500,
            Self::AfterLost(last) => last.is_transient(),
            _ => false,
        }
    }

    /// Whether the server is still at work on an earlier try of the same request.
    pub fn is_under_way(&self) -> bool {
        matches!(self, Self::Refused { problem, .. } if problem.code == "IDEMPOTENCY_CONFLICT")
    }

    /// Whether the request may have been carried out though its answer is not known. A gateway that has lost the server
    /// says 502 or 504.
    pub fn is_lost_answer(&self) -> bool {
        match self {
            Self::TimedOut { .. } | Self::Lost { .. } | Self::AfterLost(_) => true,
            Self::Foreign { status, .. } => matches!(status, 502 | 504),
            _ => false,
        }
    }

    /// What to try next.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unreachable { server, loopback: true, what } if !is_untrusted(what) => {
                nothing_here(server, local::died().as_ref())
            }
            Self::Unreachable { what, .. } if is_untrusted(what) => UNTRUSTED_SERVER.to_owned(),
            Self::Unreachable { .. } => "Check the address (`interlock context show`), and whether this machine may \
                                         reach it: `interlock doctor --server URL` looks."
                .to_owned(),
            Self::TimedOut { .. } | Self::Lost { .. } => {
                "Try again; `interlock doctor` looks at the server's health.".to_owned()
            }
            Self::Refused { server, had_credential, problem } => return refusal_hint(server, *had_credential, problem),
            Self::Foreign { status: 300..=399, .. } => {
                "Redirects are not followed; use the address that it points to.".to_owned()
            }
            Self::Foreign { .. } => "Is this the address of an Interlock server, with nothing in between?".to_owned(),
            Self::Unreadable { .. } | Self::Unknown { .. } => {
                "The server may be of another version: compare `interlock --version` on both sides.".to_owned()
            }
            Self::AfterLost(last) => return last.hint(),
            Self::Setup(_) => return None,
        })
    }
}

/// No server answers on this machine. One that was killed is told, with the address that it had.
fn nothing_here(server: &str, died: Option<&LocalServer>) -> String {
    let died = died.map_or_else(String::new, |died| {
        format!(" The server that ran at {} (process {}) was killed, or has crashed.", visible(&died.server), died.pid)
    });
    format!(
        "Is it running? `interlock up` starts one on this machine; for another address use --server, INTERLOCK_SERVER or \
         `interlock context use`. Tried: {server}.{died}"
    )
}

fn refusal_hint(server: &str, had_credential: bool, problem: &Problem) -> Option<String> {
    let mut hint = match problem.status {
        401 if problem.code == "LOGIN_FAILED" => {
            "An administrator can send a new link: `interlock user invite NAME`.".to_owned()
        }
        401 if had_credential => format!(
            "The server does not know this credential: it is wrong, expired or revoked. `interlock login --server \
             {server}` stores another one."
        ),
        401 => format!(
            "Log in with `interlock login --server {server}`, or set INTERLOCK_API_KEY or INTERLOCK_API_KEY_FILE."
        ),
        // They say themselves what to do.
        403 if ["SECOND_KEY_REQUIRED", "SIGN_IN_AGAIN"].contains(&problem.code.as_str()) => return None,
        403 if problem.code == "PERSON_REQUIRED" => {
            format!("`interlock login --server {server} --user NAME` or `--browser` signs you in as yourself.")
        }
        403 => "Ask an administrator for a role that may do this (`interlock user` and `interlock key` manage roles), \
                or use another context."
            .to_owned(),
        404 if problem.code == "WORKFLOW_NOT_FOUND" => "`interlock workflow list` shows what there is.".to_owned(),
        404 if problem.code == "SCHEDULE_NOT_FOUND" => "`interlock schedule list` shows what there is.".to_owned(),
        409 if problem.code == "RUN_TERMINAL_STATE" => {
            "`interlock run retry` and `interlock run restart` make a new run from a finished one.".to_owned()
        }
        409 if problem.code == "APPROVAL_CHANGED" => {
            "It is not what you were shown any more: look again with `interlock approval show`, then decide.".to_owned()
        }
        409 if problem.code.starts_with("APPROVAL_") => {
            "`interlock approval show` says who may decide, who has, and what became of it.".to_owned()
        }
        422 if problem.detail.starts_with("`inputs.") && problem.detail.contains("` is missing") => {
            "Give it with -i NAME=VALUE; `interlock workflow show NAME` shows what inputs the workflow takes."
                .to_owned()
        }
        422 if problem.detail.contains("is a number, expected text") => {
            "On the command line a value that reads as JSON is JSON; to give it as text, quote it: -i 'NAME=\"7\"'."
                .to_owned()
        }
        429 | 503 => "Try again in a moment.".to_owned(),
        _ => String::new(),
    };
    if let Some(run) = problem.run_id {
        let space = if hint.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(hint, "{space}`interlock run show {run}` shows the run that is in the way.");
    }
    (!hint.is_empty()).then_some(hint)
}

/// What to do about a server whose certificate is by no authority that is known here.
pub const UNTRUSTED_SERVER: &str = "The server's certificate is not trusted here: name the authority that has signed it \
                                    with --ca FILE or INTERLOCK_CA, as in the server's `tls/ca.pem`; check that the \
                                    address is a name that the certificate has.";

/// Whether the handshake failed because of the server's certificate.
pub fn is_untrusted(what: &str) -> bool {
    what.contains("invalid peer certificate") || what.contains("UnknownIssuer")
}

/// Why a request did not arrive: the causes, without the two layers of the HTTP client in which they come.
pub fn behind_request(error: &dyn std::error::Error) -> String {
    match error.source().and_then(std::error::Error::source) {
        Some(cause) => in_full(cause),
        None => in_full(error),
    }
}

/// An error with its causes, each said once.
pub fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = if text.is_empty() { said } else { format!("{text}: {said}") };
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> ClientError {
        let problem = Box::new(Problem::new(status, code, "no \u{1b}[2J"));
        ClientError::Refused { server: "http://h".into(), had_credential: false, problem }
    }

    #[test]
    fn every_refusal_ends_with_a_code_that_says_what_to_do() {
        for (status, exit) in [
            (401, Exit::NotPermitted),
            (403, Exit::NotPermitted),
            (404, Exit::NotFound),
            (409, Exit::Refused),
            (422, Exit::Refused),
            (429, Exit::TryLater),
            (503, Exit::Unavailable),
        ] {
            assert_eq!(refused(status, "X").exit(), exit, "{status}");
        }
        let unreadable = refused(500, RECORD_UNREADABLE);
        assert_eq!((unreadable.exit(), unreadable.is_transient(), unreadable.hint()), (Exit::Internal, false, None));
        assert!(refused(401, "UNAUTHORIZED").hint().unwrap().contains("interlock login"));
        assert!(refused(404, "WORKFLOW_NOT_FOUND").hint().unwrap().contains("workflow list"));
        assert!(refused(409, "RUN_TERMINAL_STATE").hint().unwrap().contains("retry"));
    }

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request for url (http://h/readyz)")]
    struct FailedRequest(#[source] FailedConnect);

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct FailedConnect(#[source] std::io::Error);

    #[test]
    fn a_server_that_is_away_is_told_without_the_words_of_the_http_client() {
        let refused = FailedRequest(FailedConnect(std::io::Error::other("connection refused")));
        assert_eq!(behind_request(&refused), "connection refused");
        assert_eq!(behind_request(&std::io::Error::other("no route")), "no route");
    }

    #[test]
    fn a_server_that_was_killed_is_told_where_none_answers() {
        let died = LocalServer { server: "http://127.0.0.1:18420".into(), api_key: None, ca: None, pid: 77 };
        let told = nothing_here("http://127.0.0.1:8420", Some(&died));
        assert!(told.ends_with("Tried: http://127.0.0.1:8420. The server that ran at http://127.0.0.1:18420 (process 77) was killed, or has crashed."));
        assert!(nothing_here("http://127.0.0.1:8420", None).ends_with("Tried: http://127.0.0.1:8420."));
    }

    #[test]
    fn a_missing_input_is_told_with_the_flag_that_gives_it() {
        let problem = Box::new(Problem::new(422, "INPUT_INVALID", "`inputs.name` is missing"));
        let refused = ClientError::Refused { server: "http://h".into(), had_credential: true, problem };
        assert!(refused.hint().unwrap().starts_with("Give it with -i NAME=VALUE"));
    }

    #[test]
    fn what_a_server_says_cannot_command_the_terminal() {
        assert_eq!(refused(409, "X").to_string(), "no \\u{1b}[2J (X)");
    }

    #[test]
    fn a_detail_of_several_lines_is_told_in_several_lines() {
        let problem = Box::new(Problem::new(422, "X", "2 findings:\nline 1: a\nline 2: b"));
        let refused = ClientError::Refused { server: "http://h".into(), had_credential: false, problem };
        assert_eq!(refused.to_string(), "2 findings:\n  line 1: a\n  line 2: b (X)");
    }
}
