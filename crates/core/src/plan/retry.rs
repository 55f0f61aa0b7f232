//! When a failed attempt is tried again: classification of errors, the budget, and the backoff.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::RunId;
use crate::json::Hash;
use crate::limits;
use crate::state::{EffectClass, StepKind, names};
use crate::time::Millis;
use std::fmt;
use std::str::FromStr;

use crate::state::UnknownName;

names!(
    /// What went wrong, as far as a retry is concerned.
    ErrorClass, "error class", {
        Timeout = "timeout",
        /// The other side failed (5xx), or could not be reached.
        Unavailable = "unavailable",
        RateLimited = "rate_limited",
        /// The request was wrong (any other 4xx).
        Invalid = "invalid",
        /// Policy's decision.
        Denied = "denied",
        /// People's decision.
        Rejected = "rejected",
        /// The worker was lost while it ran the step.
        LeaseExpired = "lease_expired",
        /// Thrown by user code without a class: retryable, since most such errors are transient.
        Unclassified = "unclassified",
        /// User code said that trying again is useless.
        Terminal = "terminal",
    }
);

impl ErrorClass {
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Timeout | Self::Unavailable | Self::RateLimited | Self::LeaseExpired | Self::Unclassified)
    }

    /// Timeouts, 5xx and rate limits are tried again, any other 4xx is not. That an API refuses the caller (401, 403) is
    /// no decision of policy.
    pub const fn of_http_status(status: u16) -> Self {
        match status {
            408 | 504 => Self::Timeout,
            429 => Self::RateLimited,
            400..=499 => Self::Invalid,
            _ => Self::Unavailable,
        }
    }
}

/// The code of the error of a step whose worker does not know its task.
pub const TASK_UNKNOWN: &str = "TASK_UNKNOWN";
/// The code of the error of a step that the policy denies. Of a step that is ready: denied to the worker that had it, right before an effect.
pub const POLICY_DENIED: &str = "POLICY_DENIED";
/// The code of the error of a step on which the policy could not decide.
pub const POLICY_UNAVAILABLE: &str = "POLICY_UNAVAILABLE";
/// The code of the error of a rollback that was carried out, and of which nothing shows that it took.
pub const ROLLBACK_UNVERIFIED: &str = "ROLLBACK_UNVERIFIED";
/// The code of the error of a command that the worker's own lists deny.
pub const COMMAND_NOT_PERMITTED: &str = "COMMAND_NOT_PERMITTED";
/// Error codes of a command whose confinement could not be set up on its worker: nothing has run, and another worker may do better.
pub const SANDBOX_NOT_ATTESTED: &str = "SANDBOX_NOT_ATTESTED";
pub const SANDBOX_NOT_SET_UP: &str = "SANDBOX_NOT_SET_UP";
pub const SANDBOX_REFUSED: &str = "SANDBOX_REFUSED";
/// What the codes of errors begin with where a secret could not be had. A command gets its secrets before it is started.
const CREDENTIAL_CODES: &str = "CREDENTIAL_";
const RESOLVED_HAPPENED: &str = "RESOLVED_HAPPENED";

/// Why an attempt failed, in words for people and a code for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepError {
    pub class: ErrorClass,
    pub code: String,
    pub message: String,
}

impl StepError {
    pub fn new(class: ErrorClass, code: &str, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if message.len() > limits::ERROR_BYTES_MAX {
            let mut end = limits::ERROR_BYTES_MAX;
            while !message.is_char_boundary(end) {
                end -= 1;
            }
            message.truncate(end);
            message.push('…');
        }
        Self { class, code: code.chars().take(limits::NAME_BYTES_MAX).collect(), message }
    }

    /// What a step keeps that succeeded because a person or a probe said so, and not because its worker reported it.
    pub fn resolved_as_happened(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Terminal, RESOLVED_HAPPENED, message)
    }

    /// Whether a command's attempt that has failed with it was certainly not started.
    pub fn is_before_start(&self) -> bool {
        let is_refusal = matches!(
            self.code.as_str(),
            COMMAND_NOT_PERMITTED | SANDBOX_NOT_ATTESTED | SANDBOX_NOT_SET_UP | SANDBOX_REFUSED
        );
        is_refusal || self.code.starts_with(CREDENTIAL_CODES)
    }

    /// Whether the step that keeps it has succeeded.
    pub fn is_resolved_as_happened(&self) -> bool {
        self.code == RESOLVED_HAPPENED
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// How long to wait before attempt `failures + 1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Backoff {
    /// 5 s, 30 s, 2 min, 10 min; the last one repeats.
    Ladder,
    Exponential {
        base: Millis,
        factor: f64,
        cap: Millis,
    },
    Fixed {
        delay: Millis,
    },
}

const LADDER: [Millis; 4] = [Millis::from_secs(5), Millis::from_secs(30), Millis::from_mins(2), Millis::from_mins(10)];

impl Backoff {
    /// The longest wait after the `failures`-th failure (1, 2, …), before jitter.
    pub fn ceiling(&self, failures: u32) -> Millis {
        let nth = failures.max(1) - 1;
        let ceiling = match self {
            Self::Ladder => LADDER[(nth as usize).min(LADDER.len() - 1)],
            Self::Exponential { base, factor, cap } => {
                let grown = base.0 as f64 * factor.max(1.0).powi(i32::try_from(nth).unwrap_or(i32::MAX));
                Millis(if grown.is_finite() && grown < cap.0 as f64 { grown as u64 } else { cap.0 })
            }
            Self::Fixed { delay } => *delay,
        };
        ceiling.min(limits::BACKOFF_MAX)
    }

    /// Full jitter: uniform over `0..=ceiling`, drawn from what is being retried, so that the same decision is
    /// the same wherever it is made. A fixed delay is kept as it is.
    pub fn delay(&self, failures: u32, seed: JitterSeed) -> Millis {
        let ceiling = self.ceiling(failures);
        if matches!(self, Self::Fixed { .. }) {
            return ceiling;
        }
        Millis(seed.draw() % (ceiling.0 + 1))
    }
}

/// What jitter is drawn from: the run, the step and the attempt.
#[derive(Debug, Clone, Copy)]
pub struct JitterSeed {
    pub run: RunId,
    pub position: u32,
    pub attempt: u32,
}

impl JitterSeed {
    fn draw(self) -> u64 {
        let mut bytes = [0u8; 24];
        bytes[..16].copy_from_slice(self.run.as_bytes());
        bytes[16..20].copy_from_slice(&self.position.to_be_bytes());
        bytes[20..].copy_from_slice(&self.attempt.to_be_bytes());
        let hash = Hash::of(&bytes).0;
        u64::from_be_bytes([hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]])
    }
}

/// The retry rule of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    pub backoff: Backoff,
}

impl RetryPolicy {
    /// 5 for task, connector and model; 2 for commands that read or are idempotent, else 1.
    pub fn default_for(kind: StepKind, effect: EffectClass) -> Self {
        let max_attempts = match kind {
            StepKind::Command | StepKind::Rollback => match effect {
                EffectClass::Read | EffectClass::Idempotent => 2,
                EffectClass::Keyed | EffectClass::Unsafe => 1,
            },
            _ => 5,
        };
        Self { max_attempts, backoff: Backoff::Ladder }
    }

    /// Whether a further failure, after `failures` charged ones, spends the budget.
    pub fn is_exhausted(&self, failures: u32) -> bool {
        failures + 1 >= self.max_attempts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const SEED: JitterSeed = JitterSeed { run: RunId(Uuid::nil()), position: 0, attempt: 1 };

    #[test]
    fn the_ladder_is_the_seeds() {
        let ladder: Vec<_> = (1..=6).map(|n| Backoff::Ladder.ceiling(n).0 / 1000).collect();
        assert_eq!(ladder, [5, 30, 120, 600, 600, 600]);
    }

    #[test]
    fn exponential_covers_001_and_never_passes_its_cap() {
        let backoff = Backoff::Exponential { base: Millis(1000), factor: 2.0, cap: Millis(60_000) };
        let ceilings: Vec<_> = (1..=8).map(|n| backoff.ceiling(n).0).collect();
        assert_eq!(ceilings, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.ceiling(u32::MAX).0, 60_000);
    }

    #[test]
    fn jitter_stays_below_the_ceiling_spreads_and_repeats() {
        let draws: Vec<_> =
            (1..200).map(|attempt| Backoff::Ladder.delay(1, JitterSeed { attempt, ..SEED }).0).collect();
        assert!(draws.iter().all(|delay| *delay <= 5000));
        assert!(draws.iter().any(|delay| *delay < 1000) && draws.iter().any(|delay| *delay > 4000));
        assert_eq!(Backoff::Ladder.delay(1, SEED), Backoff::Ladder.delay(1, SEED));
        assert_eq!(Backoff::Fixed { delay: Millis(7) }.delay(3, SEED), Millis(7));
    }

    #[test]
    fn classes_follow_the_http_status() {
        for (status, retryable) in [
            (408, true),
            (429, true),
            (500, true),
            (503, true),
            (504, true),
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (422, false),
        ] {
            let class = ErrorClass::of_http_status(status);
            assert_eq!(class.is_retryable(), retryable, "{status}");
            assert_ne!(class, ErrorClass::Denied, "{status}: only a decision denies");
        }
    }

    #[test]
    fn the_budget_counts_failures() {
        let policy = RetryPolicy { max_attempts: 3, backoff: Backoff::Ladder };
        assert!(!policy.is_exhausted(0));
        assert!(!policy.is_exhausted(1));
        assert!(policy.is_exhausted(2));
    }
}
