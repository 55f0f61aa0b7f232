//! Whose an attempt is. A worker speaks and acts for what it was given itself, and for nothing that another worker of the tenant
//! holds: what it reports is recorded as the holder's.

use std::ops::ControlFlow;

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

/// What a run says of who has an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldBy {
    /// This session, now.
    Session(SessionId),
    /// Nobody any more: its history tells who had it.
    Nobody,
}

impl HeldBy {
    pub fn of(run: &Run, at: AttemptRef) -> Self {
        match run.steps.get(at.position as usize) {
            Some(step) if step.attempt == at.attempt => match step.phase {
                Phase::Running { session, .. } => Self::Session(session),
                _ => Self::Nobody,
            },
            _ => Self::Nobody,
        }
    }

    pub fn is_another_than(self, session: SessionId) -> bool {
        matches!(self, Self::Session(holder) if holder != session)
    }
}

/// For whoever says something of an attempt that is not its own. It learns no more than that.
pub(super) fn not_its_own(at: AttemptRef) -> EngineError {
    let AttemptRef { run, position, attempt, .. } = at;
    Rejection::StaleAttempt { run, step: position, given: attempt, current: attempt }.into()
}

impl Workers {
    /// Refuses who neither has the attempt nor had it.
    pub(super) async fn check_holder(&self, session: SessionId, at: AttemptRef) -> Result<(), EngineError> {
        let held_by = self.0.execute(
            at.tenant,
            at.run,
            Context::SYSTEM,
            |facts| Ok(ControlFlow::Break(HeldBy::of(facts.run(), at))),
            |_, _| HeldBy::Nobody,
        );
        match held_by.await? {
            HeldBy::Session(holder) if holder == session => Ok(()),
            HeldBy::Session(_) => Err(not_its_own(at)),
            HeldBy::Nobody => self.check_former_holder(session, at).await,
        }
    }

    /// Refuses who did not have an attempt that is over. Attempts that nobody has had are as good as others'.
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
}
