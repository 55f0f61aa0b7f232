//! The holder of an attempt. A session reports and acts for attempts that it was given itself, and for none that
//! another worker of the tenant holds: what it reports is recorded as the holder's.

use std::ops::ControlFlow;

use interlock_core::decide::ended_by_report;
use interlock_core::ids::SessionId;
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::run::event::Event;
use interlock_core::run::{Phase, Run};
use interlock_core::work::AttemptRef;

use crate::error::EngineError;
use crate::parts::Workers;

/// How many events of a run are looked through at once.
const EVENTS_AT_ONCE: usize = 500;

/// Which session has an attempt, as its run says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldBy {
    /// This session, now.
    Session(SessionId),
    /// No session any more: the run's history tells which session had it.
    NoSession,
}

impl HeldBy {
    pub fn of(run: &Run, at: AttemptRef) -> Self {
        match run.steps.get(at.position as usize) {
            Some(step) if step.attempt == at.attempt => match step.phase {
                Phase::Running { session, .. } => Self::Session(session),
                _ => Self::NoSession,
            },
            _ => Self::NoSession,
        }
    }

    pub fn is_another_than(self, session: SessionId) -> bool {
        matches!(self, Self::Session(holder) if holder != session)
    }
}

/// The refusal for a session that reports on an attempt that is not its own. It learns no more than that.
pub(super) fn not_its_own(at: AttemptRef) -> EngineError {
    let AttemptRef { run, position, attempt, .. } = at;
    Rejection::StaleAttempt { run, position, given: attempt, current: attempt }.into()
}

/// Whether a report with this result leaves such an event behind.
fn is_told_by(event: &Event, result: &str) -> bool {
    match event {
        Event::StepCompleted { .. } => result == "completed",
        Event::StepWaiting { .. } => result == "waiting",
        _ => matches!(result, "retry" | "dead"),
    }
}

impl Workers {
    /// Refuses who neither has the attempt nor had it.
    pub(super) async fn check_holder(&self, session: SessionId, at: AttemptRef) -> Result<(), EngineError> {
        let held_by = self.0.execute(
            at.tenant,
            at.run,
            Context::SYSTEM,
            |facts| Ok(ControlFlow::Break(HeldBy::of(facts.run(), at))),
            |_, _| HeldBy::NoSession,
        );
        match held_by.await? {
            HeldBy::Session(holder) if holder == session => Ok(()),
            HeldBy::Session(_) => Err(not_its_own(at)),
            HeldBy::NoSession => self.check_former_holder(session, at).await,
        }
    }

    /// Refuses a session that did not have this attempt, which is over. An attempt that no session has had counts as
    /// another session's.
    pub(super) async fn check_former_holder(&self, session: SessionId, at: AttemptRef) -> Result<(), EngineError> {
        let mut after = 0;
        loop {
            let records = self.0.0.store.events(at.tenant, at.run, after, EVENTS_AT_ONCE).await?;
            let Some(last) = records.last() else { return Err(not_its_own(at)) };
            after = last.seq;
            for record in &records {
                let Ok(Event::StepStarted { step, attempt, session: holder, .. }) = record.event.decode() else {
                    continue;
                };
                if (step, attempt) == (at.position, at.attempt) {
                    return if holder == session { Ok(()) } else { Err(not_its_own(at)) };
                }
            }
        }
    }

    /// Whether the attempt, which is over, was ended by a report of its worker with the same result: what is reported for it once more is
    /// a repeat. A worker that says something else now may have done what no step shows.
    pub(super) async fn was_reported(&self, at: AttemptRef, result: &str) -> Result<bool, EngineError> {
        let (mut after, mut has_begun) = (0, false);
        loop {
            let records = self.0.0.store.events(at.tenant, at.run, after, EVENTS_AT_ONCE).await?;
            let Some(last) = records.last() else { return Ok(false) };
            after = last.seq;
            for record in &records {
                let Ok(event) = record.event.decode::<Event>() else { continue };
                if let Some(by_report) = ended_by_report(&event, at.position).filter(|_| has_begun) {
                    return Ok(by_report && is_told_by(&event, result));
                }
                has_begun |= matches!(event, Event::StepStarted { step, attempt, .. }
                    if (step, attempt) == (at.position, at.attempt));
            }
        }
    }
}
