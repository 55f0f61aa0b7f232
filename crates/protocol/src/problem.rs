//! Problem details (RFC 9457): how every refusal and failure looks on the wire.

use interlock_core::ids::RunId;
use interlock_core::json::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::transport::TransportError;
use crate::workflows::Diagnostic;

/// The media type of a [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// The code of a record that the server cannot read. It stays so until an operator has mended the row.
pub const RECORD_UNREADABLE: &str = "RECORD_UNREADABLE";

/// What went wrong. `code` is for programs and never changes; `detail` is for people and may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    pub code: String,
    /// The run that stands in the way: the one that holds the subject or the idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// What is wrong with a workflow file, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// The workflows among which the request has to choose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The approval as it is now, where a vote was about an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Json>,
    /// The approvals that are open, where a vote has to say which of them it means.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Json>,
}

impl Problem {
    pub fn new(status: u16, code: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:interlock:problem:{code}"),
            title: title(code),
            status,
            detail: detail.into(),
            code: code.to_owned(),
            run_id: None,
            diagnostics: Vec::new(),
            candidates: Vec::new(),
            approval: None,
            approvals: Vec::new(),
        }
    }

    /// Whether the same call may succeed later without a change: the server is overloaded or away.
    pub fn is_transient(&self) -> bool {
        is_transient(self.status) && self.code != RECORD_UNREADABLE
    }
}

/// Timeouts, rate limits and failures of the server pass; every other 4xx is an answer.
pub const fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 425 | 429) || status >= 500
}

/// `RUN_NOT_FOUND` reads as "Run not found".
fn title(code: &str) -> String {
    let mut words = code.replace('_', " ").to_ascii_lowercase();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

impl From<Problem> for TransportError {
    fn from(problem: Problem) -> Self {
        // A worker keeps what it has to tell of a run that cannot be read as long as it keeps anything: the row may be mended.
        if is_transient(problem.status) {
            Self::Unavailable(format!("{}: {}", problem.code, problem.detail))
        } else {
            Self::Refused { code: problem.code, message: problem.detail }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_as_rfc_9457_says() {
        let problem = Problem::new(404, "RUN_NOT_FOUND", "run run_x does not exist");
        let json = serde_json::to_value(&problem).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "type": "urn:interlock:problem:RUN_NOT_FOUND",
                "title": "Run not found",
                "status": 404,
                "detail": "run run_x does not exist",
                "code": "RUN_NOT_FOUND",
            })
        );
        assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
    }

    #[test]
    fn a_record_that_cannot_be_read_does_not_pass_by_itself() {
        let problem = Problem::new(500, RECORD_UNREADABLE, "");
        assert!(!problem.is_transient() && Problem::new(500, "INTERNAL", "").is_transient());
        let worker = TransportError::from(problem);
        assert!(matches!(worker, TransportError::Unavailable(_)), "a worker keeps its result");
    }

    #[test]
    fn only_what_passes_by_itself_is_worth_a_repeat() {
        let error = |status| TransportError::from(Problem::new(status, "X", ""));
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(error(status), TransportError::Unavailable(_)), "{status}");
        }
        for status in [400, 401, 403, 404, 409, 410, 413, 422] {
            assert!(matches!(error(status), TransportError::Refused { .. }), "{status}");
        }
    }
}
