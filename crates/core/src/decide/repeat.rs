//! Whether a report for an attempt that is over is the report that has ended it, once more. The events of the run tell how the
//! attempt has ended ([`AttemptEnding`]). The output of a step that was done they do not hold: the caller compares it.

use super::complete::{bounded, ended_by_report, ended_by_us, for_good, is_doubted_by_report, is_recorded};
use super::lost::{GIVEN_BACK, RELEASED};
use crate::plan::retry::{StepError, TASK_UNKNOWN};
use crate::run::Run;
use crate::run::event::Event;
use crate::time::Timestamp;
use crate::work::{AttemptRef, ReportedOutcome};

/// How an attempt has ended, as the events of its run tell.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnding {
    /// Its worker has reported that the step is done, in the event with this `seq`.
    Completed { seq: u64 },
    /// Its worker has reported that it waits.
    Waiting { signal: String, key: String, opened_at: Timestamp, deadline_at: Option<Timestamp> },
    /// Its worker has reported that it failed.
    Failed { error: StepError },
    /// It has left a doubt. `done`: the `seq` of the event that the step was done after all, as its worker has said late, or a person
    /// or a probe.
    InDoubt { error: Option<StepError>, done: Option<u64> },
    /// The step was given back.
    GivenBack,
    /// In another way, with the error that the event has.
    GivenUp { error: Option<StepError> },
}

/// The output of a step that was done, beside a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparedOutput {
    /// The report has the same one.
    pub is_same: bool,
    /// A person or a probe has said that the step is done, and not its worker.
    pub is_resolved: bool,
}

/// What a report is, beside what is recorded of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// The report that is recorded, once more.
    Same,
    /// Another report is recorded: that the attempt `completed`, `failed`, or began `waiting`.
    Other(&'static str),
    /// No report is recorded.
    New,
}

impl AttemptEnding {
    /// What an event says of the attempt of this step that had begun before it; nothing where the attempt goes on after it.
    pub fn of(event: &Event, (seq, at): (u64, Timestamp), position: u32) -> Option<Self> {
        let by_report = ended_by_report(event, position)?;
        Some(match event {
            Event::StepCompleted { .. } if by_report => Self::Completed { seq },
            Event::StepWaiting { signal: Some(signal), key: Some(key), deadline_at, .. } => {
                Self::Waiting { signal: signal.clone(), key: key.clone(), opened_at: at, deadline_at: *deadline_at }
            }
            Event::StepInDoubt { error, .. } => Self::InDoubt { error: error.clone(), done: None },
            Event::StepFailed { error, .. } | Event::StepRetrying { error, .. } if by_report => {
                Self::Failed { error: error.clone() }
            }
            Event::StepFailed { error, .. } | Event::StepRetrying { error, .. } if error.code == RELEASED => {
                Self::GivenBack
            }
            Event::StepFailed { error, .. } | Event::StepRetrying { error, .. } => {
                Self::GivenUp { error: Some(error.clone()) }
            }
            Event::StepReady { why, .. } if why == GIVEN_BACK => Self::GivenBack,
            _ => Self::GivenUp { error: None },
        })
    }

    /// Takes in a later event of the run.
    pub fn hear(&mut self, event: &Event, seq: u64, (position, attempt): (u32, u32)) {
        let Self::InDoubt { done: done @ None, .. } = self else { return };
        if matches!(event, Event::StepCompleted { step, attempt: of, .. } if (*step, *of) == (position, attempt)) {
            *done = Some(seq);
        }
    }

    /// Whether no later event says more.
    pub const fn is_settled(&self) -> bool {
        !matches!(self, Self::InDoubt { done: None, .. })
    }

    /// The `seq` of the event which tells that the step is done.
    pub const fn done_seq(&self) -> Option<u64> {
        match self {
            Self::Completed { seq } => Some(*seq),
            Self::InDoubt { done, .. } => *done,
            _ => None,
        }
    }

    /// What the report is beside that. `output`: of the step, where it is done; none where it cannot be had, and is not compared.
    pub fn repeat(
        &self,
        run: &Run,
        at: AttemptRef,
        outcome: &ReportedOutcome,
        output: Option<ComparedOutput>,
    ) -> Repeat {
        let same_or_new = |is_same: bool| if is_same { Repeat::Same } else { Repeat::New };
        match self {
            Self::Completed { .. } => match outcome {
                ReportedOutcome::Completed { .. } if output.is_none_or(|output| output.is_same) => Repeat::Same,
                _ => Repeat::Other(COMPLETED),
            },
            Self::Waiting { .. } if self.is_same_wait(run, outcome) => Repeat::Same,
            Self::Waiting { .. } => Repeat::Other(WAITING),
            Self::Failed { error } => same_or_failed(error, outcome),
            Self::InDoubt { error, .. } => in_doubt(run, at, outcome, (error.as_ref(), output)),
            Self::GivenBack => same_or_new(matches!(outcome, ReportedOutcome::Released)),
            // Some errors of workers read like those of the server, and it is not known whose one was.
            Self::GivenUp { error } => same_or_new(error.as_ref().is_some_and(|error| is_told(error, outcome))),
        }
    }

    fn is_same_wait(&self, run: &Run, outcome: &ReportedOutcome) -> bool {
        let Self::Waiting { signal, key, opened_at, deadline_at } = self else { return false };
        let ReportedOutcome::Waiting { signal: told, key: told_key, timeout, .. } = outcome else { return false };
        let is_same_key = match (told_key, &run.header.subject) {
            (Some(told), _) | (None, Some(told)) => told == key,
            (None, None) => *key == run.id.to_string(),
        };
        signal == told && is_same_key && *deadline_at == timeout.map(|timeout| *opened_at + timeout)
    }
}

const COMPLETED: &str = "completed";
const WAITING: &str = "waiting";
const FAILED: &str = "failed";

/// A report for an attempt that has left a doubt. What its worker reported may have led to it, and the worker may have said since
/// that the step is done.
fn in_doubt(
    run: &Run,
    at: AttemptRef,
    outcome: &ReportedOutcome,
    (error, output): (Option<&StepError>, Option<ComparedOutput>),
) -> Repeat {
    let told_late = output.filter(|output| !output.is_resolved);
    let is_recorded = is_recorded(run, at.position, at.attempt);
    if matches!(outcome, ReportedOutcome::Completed { .. }) {
        return match told_late {
            Some(output) if !output.is_same => Repeat::Other(COMPLETED),
            Some(_) => Repeat::Same,
            None if is_recorded => Repeat::Same,
            None => Repeat::New,
        };
    }
    // Events of earlier releases do not say what led to the doubt; the step does while it is in doubt.
    let still = run.steps.get(at.position as usize).and_then(|step| step.last_error.as_ref());
    let still = still.filter(|_| is_doubted_by_report(run, at.position, at.attempt));
    match error.or(still) {
        Some(error) if !ended_by_us(error) => same_or_failed(error, outcome),
        Some(error) if is_told(error, outcome) => Repeat::Same,
        _ if told_late.is_some() => Repeat::Other(COMPLETED),
        _ if is_recorded => Repeat::Same,
        _ => Repeat::New,
    }
}

fn same_or_failed(kept: &StepError, outcome: &ReportedOutcome) -> Repeat {
    if is_told(kept, outcome) { Repeat::Same } else { Repeat::Other(FAILED) }
}

/// Whether a report leaves this error behind.
fn is_told(kept: &StepError, outcome: &ReportedOutcome) -> bool {
    let told = match outcome {
        ReportedOutcome::Retry { error, .. } => bounded(error.clone()),
        ReportedOutcome::Dead { error } => bounded(for_good(error.clone())),
        ReportedOutcome::Released => return kept.code == RELEASED,
        ReportedOutcome::UnknownTask => return kept.code == TASK_UNKNOWN || kept.code == RELEASED,
        ReportedOutcome::Completed { .. } | ReportedOutcome::Waiting { .. } => return false,
    };
    // Why there was no other try may stand behind what the worker said.
    let rest = kept.message.strip_prefix(&told.message);
    let is_message = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([';', '…']));
    (kept.class, &kept.code) == (told.class, &told.code) && is_message
}
