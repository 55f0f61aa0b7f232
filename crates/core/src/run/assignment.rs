//! The assignment of a run to one worker session. Commands with a `workdir` share a directory, which is on one machine: the run
//! is offered to a session, which checks whether it could run all of them, and takes it or says why not. An assignment permits
//! nothing. It only narrows who may claim; the attempt alone fences.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Phase, Run};
use crate::ids::SessionId;
use crate::limits;
use crate::plan::Plan;
use crate::plan::rules::Workdir;
use crate::state::{AssignmentState, Control, PreflightCheck};
use crate::time::{Millis, Timestamp};

/// How long things may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentTimes {
    /// How long a worker may take to answer an offer.
    pub ack: Millis,
    /// How long each attempt looks for a worker, and the pause after one that did not answer. The run fails after the last one.
    pub backoff: Vec<Millis>,
    /// How long a run that waits for something else keeps its worker.
    pub kept: Millis,
}

impl Default for AssignmentTimes {
    fn default() -> Self {
        let backoff = Self::growing(limits::ASSIGNMENT_BACKOFF, limits::ASSIGNMENT_ATTEMPTS);
        Self { ack: limits::ASSIGNMENT_ACK, backoff, kept: limits::ASSIGNMENT_KEPT }
    }
}

impl AssignmentTimes {
    /// So many attempts, of which each is longer than the one before.
    pub fn growing(first: Millis, attempts: u32) -> Vec<Millis> {
        let factor = |before: u32| limits::ASSIGNMENT_BACKOFF_FACTOR.saturating_pow(before);
        (0..attempts).map(|before| Millis(first.0.saturating_mul(factor(before)))).collect()
    }

    /// How often a worker is looked for before the run fails.
    pub fn attempts_max(&self) -> usize {
        self.backoff.len()
    }

    /// The time of the attempt that comes after so many failed ones.
    pub fn backoff_after(&self, failed: usize) -> Millis {
        self.backoff.get(failed).or(self.backoff.last()).copied().unwrap_or(Millis::ZERO)
    }
}

/// Where a run stands with its worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunAssignment {
    /// The number of the last offer; strictly rising, never reused.
    #[serde(default)]
    pub number: u32,
    /// The session that the run is offered to, or that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<AssignedSession>,
    /// Attempts that came to nothing since the last worker took the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<AssignmentFailure>,
    /// When the attempt that looks for a worker ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_until: Option<Timestamp>,
    /// When a run that waits for something else gives its worker up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_until: Option<Timestamp>,
    /// The worker was lost while it ran the step: no other worker gets the run before an operator reassigns it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost_in_step: bool,
    /// The worker that had the run last and was taken out of service, or has left in good order: the run waits for another one,
    /// however long that takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_by: Option<String>,
}

/// A session that a run is offered to, or that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedSession {
    pub session: SessionId,
    /// The worker's own name.
    pub worker: String,
    pub offered_at: Timestamp,
    /// By when it has to answer.
    pub ack_by: Timestamp,
    /// When it took the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<Timestamp>,
}

impl AssignedSession {
    pub const fn state(&self) -> AssignmentState {
        if self.acked_at.is_some() { AssignmentState::Acked } else { AssignmentState::Offered }
    }
}

/// Why an attempt to find a worker came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssignmentFailure {
    /// The worker that was asked; absent where there was none to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The check that failed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<PreflightCheck>,
    pub why: String,
    pub at: Timestamp,
}

impl fmt::Display for AssignmentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(worker) = &self.worker {
            write!(f, "{worker}: ")?;
        }
        match self.check {
            Some(check) => write!(f, "{check}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// One offer, as a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentRecord {
    pub number: u32,
    pub session: SessionId,
    pub worker: String,
    pub state: AssignmentState,
    pub offered_at: Timestamp,
    pub acked_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub check: Option<PreflightCheck>,
    pub reason: Option<String>,
}

impl RunAssignment {
    /// The session that has taken the run.
    pub fn acked(&self) -> Option<&AssignedSession> {
        self.with.as_ref().filter(|with| with.acked_at.is_some())
    }

    /// The session that was asked and has not answered.
    pub fn offered(&self) -> Option<&AssignedSession> {
        self.with.as_ref().filter(|with| with.acked_at.is_none())
    }

    /// Whether this session was asked already, and could not.
    pub fn was_refused_by(&self, session: SessionId) -> bool {
        self.failures.iter().any(|failure| failure.session == Some(session) && failure.check.is_some())
    }

    /// When a timer has to look at it.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let ack_by = self.offered().map(|with| with.ack_by);
        [ack_by, self.search_until, self.kept_until].into_iter().flatten().min()
    }
}

impl Plan {
    /// Whether the directory outlives every wait of its run.
    pub fn keeps_workdir(&self) -> bool {
        self.steps.iter().any(|step| step.rules.workdir == Some(Workdir::Keep))
    }
}

impl Run {
    /// The session that has taken the run, where the step that it stands at is for that one alone.
    pub fn assigned_session(&self) -> Option<SessionId> {
        self.spec(self.position).rules.workdir?;
        self.notes.assignment.as_ref()?.acked().map(|with| with.session)
    }

    /// The session that was asked to take the run, and has not answered.
    pub fn offered_session(&self) -> Option<SessionId> {
        self.notes.assignment.as_ref()?.offered().map(|with| with.session)
    }

    /// Whether the step that it stands at can be had, and is for a worker that has still to be found.
    pub fn seeks_worker(&self) -> bool {
        let is_for_one = self.spec(self.position).rules.workdir.is_some();
        let is_taken = || self.notes.assignment.as_ref().is_some_and(|assignment| assignment.acked().is_some());
        is_for_one
            && self.control == Control::Active
            && matches!(self.current().phase, Phase::Ready { .. })
            && !is_taken()
    }

    /// What a worker must have said of itself to be given the step that the run stands at, where a command carries it out. Who
    /// takes the run as a whole must be able to run all that shares its directory.
    pub fn command_needs(&self) -> Option<BTreeSet<String>> {
        let needs = self.plan.command_needs(self.spec(self.position))?;
        if !self.seeks_worker() {
            return Some(needs);
        }
        let shared = self.plan.steps.iter().filter(|step| step.rules.workdir.is_some());
        Some(shared.filter_map(|step| self.plan.command_needs(step)).flatten().chain(needs).collect())
    }

    /// What a worker must have or be to be given the step that the run stands at, besides knowing the task where it is one.
    pub fn worker_needs(&self) -> BTreeSet<String> {
        self.command_needs().unwrap_or_else(|| self.spec(self.position).task_needs())
    }

    /// Whether this session was asked already since the last worker took the run, and could not.
    pub fn was_refused_by(&self, session: SessionId) -> bool {
        self.notes.assignment.as_ref().is_some_and(|assignment| assignment.was_refused_by(session))
    }

    /// The sessions that were asked and could not, while a worker is looked for.
    pub fn refused_by(&self) -> BTreeSet<SessionId> {
        let failures = self.notes.assignment.iter().flat_map(|assignment| &assignment.failures);
        let refused = failures.filter(|failure| failure.check.is_some()).filter_map(|failure| failure.session);
        refused.filter(|_| self.seeks_worker()).collect()
    }

    /// Whether the step that it stands at is for one worker, which was asked and has not answered.
    pub fn is_offered(&self) -> bool {
        let is_for_one = self.spec(self.position).rules.workdir.is_some();
        is_for_one && self.notes.assignment.as_ref().is_some_and(|assignment| assignment.offered().is_some())
    }
}
