//! [`RunMetrics`]: a run in numbers, kept with it when it ends.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::Json;
use crate::run::Step;
use crate::state::StepState;
use crate::time::{Millis, Timestamp};

/// What a run came to. Steps of a rollback count like any others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunMetrics {
    /// All steps of the run, and how the finished ones ended.
    pub steps: u32,
    pub succeeded: u32,
    pub skipped: u32,
    pub failed: u32,
    /// Steps that were handed to a worker, in all; beyond the first time for each step they are retries.
    pub attempts: u32,
    pub retries: u32,
    /// How often people were asked, and for how long the run waited for them.
    pub approvals: u32,
    pub approval_wait_ms: u64,
    /// From the start to the end.
    pub duration_ms: u64,
    /// What the steps answered, in bytes of JSON.
    pub output_bytes: u64,
    /// What its commands wrote to `stdout` and `stderr`, in all attempts, in bytes as they are kept: without secrets, and up to the
    /// limit of each attempt.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub printed_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
const fn is_nothing(bytes: &u64) -> bool {
    *bytes == 0
}

/// How often people were asked so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalTally {
    pub count: u32,
    pub waited_ms: u64,
    /// Since when they are being asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl ApprovalTally {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn asked(&mut self, now: Timestamp) {
        self.count = self.count.saturating_add(1);
        self.since = Some(now);
    }

    pub fn answered(&mut self, now: Timestamp) {
        if let Some(since) = self.since.take() {
            self.waited_ms = self.waited_ms.saturating_add(now.since(since).0);
        }
    }
}

impl RunMetrics {
    pub fn of<'a>(steps: impl Iterator<Item = &'a Step>, approvals: ApprovalTally, duration: Millis) -> Self {
        let mut metrics = Self {
            approvals: approvals.count,
            approval_wait_ms: approvals.waited_ms,
            duration_ms: duration.0,
            ..Self::default()
        };
        for step in steps {
            metrics.steps += 1;
            metrics.attempts = metrics.attempts.saturating_add(step.attempt);
            metrics.retries = metrics.retries.saturating_add(step.attempt.saturating_sub(1));
            metrics.output_bytes += step.output.as_ref().map_or(0, bytes);
            match step.state() {
                // One that failed and may have acted is undone like those that succeeded, and keeps what went wrong.
                StepState::RolledBack if has_failed(step) => metrics.failed += 1,
                StepState::Succeeded | StepState::RolledBack => metrics.succeeded += 1,
                StepState::Skipped => metrics.skipped += 1,
                StepState::Failed => metrics.failed += 1,
                _ => {}
            }
        }
        metrics
    }
}

fn has_failed(step: &Step) -> bool {
    step.last_error.as_ref().is_some_and(|error| !error.is_resolved_as_happened())
}

/// Where a long payload is kept elsewhere, what stands in its place begins with this name and tells its length.
pub const PAYLOAD_MARK: &str = "$interlock.payload";

#[derive(Deserialize)]
struct Elsewhere {
    bytes: u64,
}

fn bytes(output: &Json) -> u64 {
    let text = output.as_str();
    let is_elsewhere = text.strip_prefix("{\"").is_some_and(|rest| rest.starts_with(PAYLOAD_MARK));
    let elsewhere = if is_elsewhere { output.decode::<Elsewhere>().ok() } else { None };
    elsewhere.map_or(text.len() as u64, |elsewhere| elsewhere.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_is_kept_elsewhere_counts_with_its_own_length() {
        assert_eq!(bytes(&Json::trusted(r#"{"a":1}"#)), 7);
        assert_eq!(bytes(&Json::trusted(r#"{"$interlock.payload":"m","bytes":70000,"sha256":"x"}"#)), 70_000);
    }
}
