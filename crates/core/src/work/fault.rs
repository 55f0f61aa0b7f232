//! What keeps work from a worker that is connected: a fault of its own, or an operator's maintenance.
//!
//! A worker with a [`WorkerFault`] is `errored`. For a minute it is given no command and no run, and it is asked to try the
//! controls of its sandbox out again: it leaves the state when they hold. After that minute it is given work as before, and a run
//! that it takes ends the state too. Tasks are given to it all the while, because they need no sandbox.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::RunId;
use crate::limits::ASSIGNMENTS_LOST_MAX;
use crate::plan::retry::StepError;
pub use crate::plan::retry::{SANDBOX_NOT_ATTESTED, SANDBOX_NOT_SET_UP, SANDBOX_REFUSED};
use crate::state::{FaultCheck, PreflightCheck};
use crate::time::{Millis, Timestamp};

/// Why a worker is `errored`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFault {
    pub check: FaultCheck,
    /// The run that showed it; none for a canary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub why: String,
    /// When it was last seen.
    pub at: Timestamp,
}

impl WorkerFault {
    /// Until when the worker is given no command and no run, where nothing clears the fault before.
    pub fn pauses_until(&self, pause: Millis) -> Timestamp {
        self.at + pause
    }

    /// Whether a passed canary says that the worker is well again. It does not try credentials out.
    pub const fn is_cleared_by_canary(&self) -> bool {
        !matches!(self.check, FaultCheck::Credentials)
    }

    /// Whether the worker is to try its sandbox out now. After a failed canary that waits for the pause to end.
    pub fn asks_for_canary(&self, now: Timestamp, pause: Millis) -> bool {
        self.is_cleared_by_canary() && (self.check != FaultCheck::Canary || self.pauses_until(pause) <= now)
    }
}

impl FaultCheck {
    /// The fault that a failed check before a run is, where the worker says that it is its own. What its lists deny is none: the
    /// run asks for it, and workers with the same lists refuse it alike.
    pub const fn of_preflight(check: PreflightCheck) -> Option<Self> {
        match check {
            PreflightCheck::Sandbox => Some(Self::Sandbox),
            PreflightCheck::Workdir => Some(Self::Workdir),
            PreflightCheck::Credentials => Some(Self::Credentials),
            PreflightCheck::Commands => None,
        }
    }

    /// The fault that the error of a command's attempt is.
    pub fn of_command(error: &StepError) -> Option<Self> {
        let is_fault = matches!(error.code.as_str(), SANDBOX_NOT_ATTESTED | SANDBOX_NOT_SET_UP | SANDBOX_REFUSED);
        is_fault.then_some(Self::Attestation)
    }
}

/// Assignments that a worker has lost since it last took a run: offers that it did not answer, and runs that it had when its
/// session was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostAssignments {
    pub count: u32,
    /// The last of them.
    pub run: RunId,
    pub at: Timestamp,
}

impl LostAssignments {
    /// With one more.
    pub fn and(before: Option<Self>, run: RunId, at: Timestamp) -> Self {
        Self { count: before.map_or(0, |before| before.count).saturating_add(1), run, at }
    }

    /// The fault that they are, once there are too many.
    pub fn fault(self) -> Option<WorkerFault> {
        (self.count >= ASSIGNMENTS_LOST_MAX).then(|| WorkerFault {
            check: FaultCheck::Assignments,
            run: Some(self.run),
            why: format!("it has lost {} assignments in a row", self.count),
            at: self.at,
        })
    }
}

/// An operator keeps new work from a worker, which stays connected and keeps what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkerMaintenance {
    /// Who has begun it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub reason: String,
    pub since: Timestamp,
    /// When it ends by itself; only an operator ends it where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl WorkerMaintenance {
    pub fn is_on(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| until > now)
    }
}

/// What became of a worker's canaries, which the server has asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CanaryReport {
    /// Every control still holds that the worker's profiles need.
    pub passed: bool,
    /// The first that does not, and what was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::retry::ErrorClass;
    use uuid::Uuid;

    const RUN: RunId = RunId(Uuid::from_u128(1));
    const PAUSE: Millis = Millis(1_000);

    fn fault(check: FaultCheck) -> WorkerFault {
        WorkerFault { check, run: None, why: "no".into(), at: Timestamp(5_000) }
    }

    #[test]
    fn only_faults_of_the_worker_itself_count() {
        assert_eq!(FaultCheck::of_preflight(PreflightCheck::Commands), None, "the run asks for what the lists deny");
        assert_eq!(FaultCheck::of_preflight(PreflightCheck::Sandbox), Some(FaultCheck::Sandbox));
        let error = |code: &str| StepError::new(ErrorClass::Unavailable, code, "no");
        assert_eq!(FaultCheck::of_command(&error(SANDBOX_NOT_ATTESTED)), Some(FaultCheck::Attestation));
        assert_eq!(FaultCheck::of_command(&error("COMMAND_FAILED")), None);
        assert_eq!(FaultCheck::of_command(&error("COMMAND_NOT_PERMITTED")), None);
    }

    #[test]
    fn a_canary_is_asked_for_at_once_and_after_a_failed_one_once_the_pause_is_over() {
        let now = Timestamp(5_100);
        assert!(fault(FaultCheck::Sandbox).asks_for_canary(now, PAUSE));
        assert!(!fault(FaultCheck::Canary).asks_for_canary(now, PAUSE));
        assert!(fault(FaultCheck::Canary).asks_for_canary(Timestamp(6_000), PAUSE));
        assert!(!fault(FaultCheck::Credentials).asks_for_canary(Timestamp(6_000), PAUSE), "it tries no credentials");
    }

    #[test]
    fn the_third_lost_assignment_is_a_fault() {
        let first = LostAssignments::and(None, RUN, Timestamp(1));
        let second = LostAssignments::and(Some(first), RUN, Timestamp(2));
        assert_eq!((first.fault(), second.fault()), (None, None));
        let third = LostAssignments::and(Some(second), RUN, Timestamp(3));
        let fault = third.fault().unwrap();
        assert_eq!((fault.check, fault.run, fault.at), (FaultCheck::Assignments, Some(RUN), Timestamp(3)));
        assert!(fault.why.contains('3'), "{}", fault.why);
    }

    #[test]
    fn maintenance_is_over_when_its_time_is() {
        let until = |until| WorkerMaintenance { by: None, reason: "disk".into(), since: Timestamp(0), until };
        assert!(until(None).is_on(Timestamp(i64::MAX)));
        assert!(until(Some(Timestamp(10))).is_on(Timestamp(9)) && !until(Some(Timestamp(10))).is_on(Timestamp(10)));
    }
}
