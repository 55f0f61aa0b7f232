//! How task code fails: [`TaskError`] says whether another try makes sense, [`EffectFailure`] whether an effect may
//! have happened.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::state::EffectClass;
use interlock_core::time::Millis;
use interlock_core::work::ReportedOutcome;

/// Why an attempt failed.
///
/// Every [`std::error::Error`] turns into one with `?`; such an error is retryable, since most are transient. For
/// that reason this type does not implement `Error` itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskError {
    error: StepError,
    backoff: Option<Millis>,
}

impl TaskError {
    /// The same, and final where a repeat would do harm.
    pub(crate) fn unless_repeatable(mut self, effect: EffectClass) -> Self {
        if effect == EffectClass::Unsafe {
            self.error.class = ErrorClass::Terminal;
        }
        self
    }

    pub fn new(class: ErrorClass, code: &str, message: impl Into<String>) -> Self {
        Self { error: StepError::new(class, code, message), backoff: None }
    }

    /// Worth another try, while the step's budget lasts.
    pub fn retryable(code: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Unclassified, code, message)
    }

    /// Trying again is useless.
    pub fn terminal(code: &str, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Terminal, code, message)
    }

    /// Classified by the status that another system answered with.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        Self::new(ErrorClass::of_http_status(status), &format!("HTTP_{status}"), message)
    }

    /// Try again after this long, instead of after the step's own backoff.
    pub fn after(mut self, pause: Duration) -> Self {
        self.backoff = Some(pause.into());
        self
    }

    pub fn with_class(mut self, class: ErrorClass) -> Self {
        self.error.class = class;
        self
    }

    pub const fn class(&self) -> ErrorClass {
        self.error.class
    }

    pub fn code(&self) -> &str {
        &self.error.code
    }

    pub fn message(&self) -> &str {
        &self.error.message
    }

    pub(crate) fn into_outcome(self) -> ReportedOutcome {
        if self.error.class.is_retryable() {
            ReportedOutcome::Retry { error: self.error, backoff: self.backoff }
        } else {
            ReportedOutcome::Dead { error: self.error }
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<E: Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            // Some errors repeat their cause in their own text.
            let cause_text = cause.to_string();
            if !message.ends_with(&cause_text) {
                message.push_str(": ");
                message.push_str(&cause_text);
            }
            source = cause.source();
        }
        Self::retryable("TASK_FAILED", message)
    }
}

/// Whether an effect that failed may have happened all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// The other system has said no, or nothing was sent.
    CertainlyNot,
    /// Sent, and no usable answer.
    Unknown,
}

/// Why an effect failed. An error that comes through `?` counts as [`Happened::Unknown`]: only who knows the other
/// system can say that it certainly did not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectFailure {
    pub happened: Happened,
    pub error: TaskError,
}

impl EffectFailure {
    pub fn certainly_not(error: impl Into<TaskError>) -> Self {
        Self { happened: Happened::CertainlyNot, error: error.into() }
    }

    pub fn unknown(error: impl Into<TaskError>) -> Self {
        Self { happened: Happened::Unknown, error: error.into() }
    }
}

impl<E: Error> From<E> for EffectFailure {
    fn from(error: E) -> Self {
        Self::unknown(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot load the order")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn an_error_of_user_code_is_retryable_and_keeps_its_causes() {
        let error = TaskError::from(Outer(std::io::Error::other("connection reset")));
        assert_eq!(error.to_string(), "TASK_FAILED: cannot load the order: connection reset");
        assert!(matches!(
            error.after(Duration::from_secs(3)).into_outcome(),
            ReportedOutcome::Retry { backoff: Some(Millis(3000)), .. }
        ));
    }

    #[test]
    fn the_class_decides_between_retry_and_dead() {
        let dead = |error: TaskError| matches!(error.into_outcome(), ReportedOutcome::Dead { .. });
        assert!(dead(TaskError::terminal("NO", "never")));
        assert!(dead(TaskError::http(422, "bad")));
        assert!(!dead(TaskError::http(503, "away")));
        assert!(dead(TaskError::retryable("X", "").with_class(ErrorClass::Denied)));
    }

    #[test]
    fn only_an_explicit_word_makes_an_effect_certainly_not_happen() {
        let failure = EffectFailure::from(std::io::Error::other("reset"));
        assert_eq!(failure.happened, Happened::Unknown);
        let failure = EffectFailure::certainly_not(TaskError::http(409, "no"));
        assert_eq!(failure.happened, Happened::CertainlyNot);
    }
}
