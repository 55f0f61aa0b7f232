//! Every refusal and failure as a problem document (RFC 9457).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::ids::RunId;
use interlock_core::json::Json;
use interlock_core::rejection::Rejection;
use interlock_core::time::Millis;
use interlock_engine::EngineError;
use interlock_engine::payloads::PayloadError;
use interlock_protocol::approvals::ApprovalView;
use interlock_protocol::problem::{PROBLEM_JSON, Problem, RECORD_UNREADABLE};
use interlock_protocol::workflows::Diagnostic;
use interlock_store::{CorruptRow, ReadError};
use tokio::time::Instant;

/// When a client that was told to come back may do so, unless it is told otherwise.
const RETRY_AFTER_SECS: u64 = 1;

/// A problem on its way out.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    problem: Box<Problem>,
    retry_after_secs: u64,
}

impl ApiError {
    pub fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        let problem = Box::new(Problem::new(status.as_u16(), code, detail));
        Self { status, problem, retry_after_secs: RETRY_AFTER_SECS }
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn code(&self) -> &str {
        &self.problem.code
    }

    pub fn detail(&self) -> &str {
        &self.problem.detail
    }

    /// Something that does not exist for the caller. `text` is what they called it.
    pub fn unknown(kind: &str, text: &str) -> Self {
        let code = match kind {
            "tenant" => "TENANT_NOT_FOUND",
            "key" => "KEY_NOT_FOUND",
            "user" => "USER_NOT_FOUND",
            "worker identity" => "WORKER_IDENTITY_NOT_FOUND",
            "delegation" => "DELEGATION_NOT_FOUND",
            "change" => "CHANGE_NOT_FOUND",
            "Slack link" => "SLACK_LINK_NOT_FOUND",
            _ => "APPROVAL_NOT_FOUND",
        };
        let named: String = text.chars().take(80).collect();
        Self::new(StatusCode::NOT_FOUND, code, format!("{kind} `{named}` does not exist"))
    }

    /// Which of the two is wrong, and whether the account exists, is not said.
    pub fn login_failed() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "LOGIN_FAILED", "the name or the password is wrong")
    }

    pub fn login_throttled(wait: Millis) -> Self {
        let seconds = wait.0.div_ceil(1_000).max(1);
        let detail = format!("too many wrong passwords for this account; try again in {seconds} s");
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, "LOGIN_THROTTLED", detail);
        error.retry_after_secs = seconds;
        error
    }

    pub fn invite_over() -> Self {
        let detail = "the link has been used, is too old, or never was; ask for a new one";
        Self::new(StatusCode::GONE, "INVITE_OVER", detail)
    }

    pub fn code_over() -> Self {
        let detail = "the code was used, is too old, or belongs to another sign-in; start `interlock login` again";
        Self::new(StatusCode::UNAUTHORIZED, "LOGIN_CODE_OVER", detail)
    }

    pub fn csrf() -> Self {
        let detail = "a write under a cookie needs the header `x-interlock-csrf` with the value that `GET /me` gives";
        Self::new(StatusCode::FORBIDDEN, "CSRF_INVALID", detail)
    }

    /// A vote on something else than what there is to decide now, which comes along.
    pub fn approval_changed(shown: &ApprovalView) -> Self {
        let detail = "the digest is not that of this approval as it is now; look again, and decide on that";
        let mut error = Self::new(StatusCode::CONFLICT, "APPROVAL_CHANGED", detail);
        error.problem.approval = Json::of(shown).ok();
        error
    }

    /// A vote on a run that has to say which of these approvals it means, by its digest.
    pub fn digest_required(why: &str, open: &[ApprovalView]) -> Self {
        let listed: Vec<_> = open.iter().map(|view| format!("{} with digest {}", view.approval, view.digest)).collect();
        let detail = format!(
            "{why}. Open: {}. Look at it (`GET /approvals/{{approval}}`), and send the `digest` of what you decide on",
            listed.join("; ")
        );
        Self::new(StatusCode::CONFLICT, "APPROVAL_DIGEST_REQUIRED", detail).listing(open)
    }

    /// A vote on something that the run does not wait for; what it does wait for comes along.
    pub fn approval_not_open(detail: String, open: &[ApprovalView]) -> Self {
        Self::new(StatusCode::CONFLICT, "APPROVAL_NOT_OPEN", detail).listing(open)
    }

    fn listing(mut self, open: &[ApprovalView]) -> Self {
        self.problem.approvals = open.iter().filter_map(|view| Json::of(view).ok()).collect();
        self
    }

    /// The request itself cannot be read.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "REQUEST_INVALID", detail)
    }

    /// The request can be read, and asks for something that cannot be.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Rejection::InvalidInput { what: detail.into() }.into()
    }

    /// No credential, or none that counts. Which of the two is not told.
    pub fn unauthorized() -> Self {
        let detail = "send a key as `authorization: Bearer ilk_…`; it must exist, be neither revoked nor expired";
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", detail)
    }

    pub fn rate_limited(per_min: u32, wait: Millis) -> Self {
        let detail = format!("this client may ask {per_min} times a minute; wait {} ms", wait.0);
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail);
        error.retry_after_secs = wait.0.div_ceil(1_000).max(1);
        error
    }

    pub fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND", "there is nothing at this address")
    }

    /// A workflow file with what is wrong with it.
    pub fn invalid_workflow(detail: impl Into<String>, diagnostics: Vec<Diagnostic>) -> Self {
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "WORKFLOW_INVALID", detail);
        error.problem.diagnostics = diagnostics;
        error
    }

    pub fn unknown_run(run: RunId) -> Self {
        Rejection::UnknownRun { run }.into()
    }

    fn about(mut self, run: RunId) -> Self {
        self.problem.run_id = Some(run);
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = serde_json::to_string(&*self.problem).unwrap_or_default();
        let mut response = (self.status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        if self.problem.is_transient() || self.problem.code == "IDEMPOTENCY_CONFLICT" {
            response.headers_mut().insert(header::RETRY_AFTER, self.retry_after_secs.into());
        }
        if self.status == StatusCode::UPGRADE_REQUIRED {
            // RFC 9110 §15.5.22: which protocol is asked for.
            let headers = response.headers_mut();
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let status = match &rejection {
            Rejection::UnknownTenant { .. } | Rejection::UnknownRun { .. } | Rejection::UnknownStep { .. } => {
                StatusCode::NOT_FOUND
            }
            Rejection::DirectiveNotPermitted { .. } | Rejection::Denied { .. } => StatusCode::FORBIDDEN,
            Rejection::Undecided { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Rejection::NotBound { .. } | Rejection::NotGranted { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Rejection::InvalidPlan { .. } | Rejection::InvalidInput { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Rejection::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            // The request is fine; the run is not where it would apply.
            _ => StatusCode::CONFLICT,
        };
        let error = Self::new(status, rejection.code(), rejection.to_string());
        match rejection {
            Rejection::Continued { by, .. } => error.about(by),
            _ => error,
        }
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let code = error.code();
        let detail = error.to_string();
        match error {
            EngineError::Rejected(rejection) => rejection.into(),
            EngineError::SubjectBusy { run, .. } | EngineError::IdempotencyExpired { run } => {
                Self::new(StatusCode::CONFLICT, code, detail).about(run)
            }
            EngineError::UnknownWorkflow { .. }
            | EngineError::UnknownPolicy { .. }
            | EngineError::UnknownSchedule { .. }
            | EngineError::UnknownEndpoint { .. }
            | EngineError::UnknownBundle { .. }
            | EngineError::UnknownAuditLog { .. } => Self::new(StatusCode::NOT_FOUND, code, detail),
            EngineError::TenantDisabled => Self::new(StatusCode::FORBIDDEN, code, detail),
            EngineError::EvidenceNotDue { .. }
            | EngineError::EvidenceTooLarge { .. }
            | EngineError::AuditBroken { .. }
            | EngineError::SubjectElsewhere { .. }
            | EngineError::WorkflowDisabled { .. }
            | EngineError::PolicyChanged
            | EngineError::IdempotencyConflict
            | EngineError::IdempotencySpent
            | EngineError::BulkCount { .. }
            | EngineError::NameTaken { .. }
            | EngineError::SourceIdTaken { .. }
            | EngineError::StaleEpoch => Self::new(StatusCode::CONFLICT, code, detail),
            EngineError::RunbookUnclear { candidates, .. } => {
                let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail);
                error.problem.candidates = candidates;
                error
            }
            EngineError::IdempotencyMismatch | EngineError::PolicyInvalid { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
            }
            EngineError::SessionGone => Self::new(StatusCode::GONE, code, detail),
            EngineError::TooManyPending | EngineError::SubjectQueueFull { .. } => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail)
            }
            EngineError::AuditClosed
            | EngineError::EvidenceNotSealed { .. }
            | EngineError::SecretsClosed
            | EngineError::OutboundClosed
            | EngineError::Contended { .. }
            | EngineError::Overloaded
            | EngineError::Closed => Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail),
            EngineError::Payload(error) => error.into(),
            EngineError::Read(error) => error.into(),
            EngineError::DiskFull(_) => {
                static TOLD: OutageTold = OutageTold::new();
                if TOLD.is_news() {
                    tracing::error!(
                        what = detail,
                        "the disk of the store is full; requests are refused until there is room"
                    );
                } else {
                    tracing::debug!(what = detail, "the disk of the store is still full");
                }
                let detail = "the disk of the store is full: nothing is committed until the operator has made room; \
                              then it goes on by itself, and the same request works";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
            }
            EngineError::Stalled(_) => store_away(code, &detail),
            EngineError::Refused(_) | EngineError::Store(_) => store_failed(code, &detail),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        let what = error.to_string();
        match error {
            ReadError::Unavailable(_) => store_away("STORE_UNAVAILABLE", &what),
            ReadError::Corrupt(row) => record_unreadable(&row),
            ReadError::Database(_) | ReadError::Closed => store_failed("STORE_UNAVAILABLE", &what),
        }
    }
}

impl From<PayloadError> for ApiError {
    fn from(error: PayloadError) -> Self {
        let status = match &error {
            PayloadError::Missing { .. } => StatusCode::GONE,
            PayloadError::Altered { .. } => StatusCode::CONFLICT,
            PayloadError::Unavailable { what } => {
                tracing::error!(what, "the payload store failed a request");
                let detail = "the payload store cannot be used right now; try again";
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, error.code(), detail);
            }
        };
        Self::new(status, error.code(), error.to_string())
    }
}

/// How long an outage that goes on is not told again, however many requests meet it. The loops tell of its end.
const TOLD_AGAIN_AFTER: Duration = Duration::from_mins(5);

/// When an outage was last told.
struct OutageTold(Mutex<Option<Instant>>);

impl OutageTold {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether it is to be told now.
    fn is_news(&self) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = told.is_none_or(|told| told.elapsed() >= TOLD_AGAIN_AFTER);
        if is_news {
            *told = Some(Instant::now());
        }
        is_news
    }
}

/// The database is away or slow: nothing is lost, and the same request works once it is back.
fn store_away(code: &str, what: &str) -> ApiError {
    static TOLD: OutageTold = OutageTold::new();
    if TOLD.is_news() {
        tracing::error!(what, "the database does not answer; requests are refused until it does");
    } else {
        tracing::debug!(what, "the database still does not answer");
    }
    let detail = "the database does not answer: the operator finds the reason in the server's log; nothing is lost, \
                  and the same request works once it is back";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
}

/// A row does not hold what it should. What it holds is for the operator, in the log, not for the caller.
fn record_unreadable(row: &CorruptRow) -> ApiError {
    tracing::error!(error = %row, "a record cannot be read, and a request that needs it is refused");
    let detail = format!(
        "a record that this request needs cannot be read (table `{}`), and repeating the request does not help: `interlock db \
         check` names the row and what is wrong with it, and `interlock doctor` the live runs that cannot be read",
        row.table
    );
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, RECORD_UNREADABLE, detail)
}

/// What the database said is for the operator, in the log, not for the caller.
fn store_failed(code: &str, what: &str) -> ApiError {
    tracing::error!(what, "the store failed a request");
    let detail = "the store cannot be used right now; try again, and look into the server's log if it stays so";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Hash;

    use super::*;

    #[test]
    fn what_may_succeed_later_has_a_status_that_says_so() {
        let run = RunId::from_bytes([7; 16]);
        let errors = [
            EngineError::Rejected(Rejection::UnknownRun { run }),
            EngineError::SubjectBusy { subject: "s".into(), run },
            EngineError::IdempotencyMismatch,
            EngineError::IdempotencyExpired { run },
            EngineError::IdempotencyConflict,
            EngineError::IdempotencySpent,
            EngineError::BulkCount { expected: 1, found: 2 },
            EngineError::TooManyPending,
            EngineError::SessionGone,
            EngineError::StaleEpoch,
            EngineError::Contended { run },
            EngineError::Overloaded,
            EngineError::Closed,
            EngineError::Payload(PayloadError::Missing { sha256: Hash::of(b"x") }),
            EngineError::Payload(PayloadError::Altered { sha256: Hash::of(b"x") }),
            EngineError::Payload(PayloadError::Unavailable { what: "secret".into() }),
            EngineError::Store("secret".into()),
        ];
        for error in errors {
            let (code, transient) = (error.code(), error.is_transient());
            let problem = ApiError::from(error).problem;
            assert_eq!((problem.code.as_str(), problem.is_transient()), (code, transient));
            assert!(!problem.detail.contains("secret"));
        }
    }

    /// Nobody is told to try again before an operator has mended the row, nor what it holds.
    #[test]
    fn a_record_that_cannot_be_read_is_no_outage() {
        let row = CorruptRow { table: "run_live", column: "step_data", row: "run_7".into(), what: "secret".into() };
        let error = EngineError::Read(row.into());
        assert_eq!(error.code(), RECORD_UNREADABLE);
        let refused = ApiError::from(error);
        assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
        for named in ["`run_live`", "`interlock db check`", "`interlock doctor`"] {
            assert!(refused.detail().contains(named), "{}", refused.detail());
        }
        assert!(!refused.detail().contains("secret") && !refused.problem.is_transient());
        let answer = refused.into_response();
        assert!(!answer.headers().contains_key(header::RETRY_AFTER));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_that_many_requests_meet_is_told_once_in_a_while() {
        let told = OutageTold::new();
        assert!(told.is_news() && !told.is_news() && !told.is_news());
        tokio::time::advance(TOLD_AGAIN_AFTER).await;
        assert!(told.is_news() && !told.is_news());
    }

    /// What a request meets only while others get in its way, and what stays between the engine and its workers.
    #[test]
    fn rare_refusals_have_their_codes() {
        let run = RunId::from_bytes([7; 16]);
        let control = interlock_core::state::Control::Canceling;
        for (error, code, status) in [
            (EngineError::Contended { run }, "RUN_CONTENDED", 503),
            (EngineError::Overloaded, "OVERLOADED", 503),
            (EngineError::AuditBroken { what: "its peaks".into() }, "AUDIT_BROKEN", 409),
            (EngineError::EvidenceNotSealed { run }, "EVIDENCE_NOT_SEALED", 503),
            (EngineError::EvidenceTooLarge { run, max: 9 }, "EVIDENCE_TOO_LARGE", 409),
            (EngineError::Rejected(Rejection::NotClaimable { run, control }), "RUN_NOT_CLAIMABLE", 409),
        ] {
            let problem = ApiError::from(error).problem;
            assert_eq!((problem.code.as_str(), problem.status), (code, status));
        }
    }
}
