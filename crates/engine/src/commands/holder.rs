//! The holder of an attempt. A session reports and acts for attempts that it was given itself, and for none that
//! another worker of the tenant holds: what it reports is recorded as the holder's.

use std::ops::ControlFlow;

use interlock_core::decide::{AttemptEnding, ComparedOutput, Repeat};
use interlock_core::ids::SessionId;
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::run::event::Event;
use interlock_core::run::{Phase, Run};
use interlock_core::work::{AttemptRef, ReportedOutcome};

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

/// What the history of a run tells of an attempt, beside a report of its worker.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttemptHistory {
    /// None where the attempt goes on, as far as the history says.
    end: Option<AttemptEnding>,
    /// The output of its step, where that is done.
    output: Option<ComparedOutput>,
}

impl AttemptHistory {
    /// What the report is, beside what is recorded of the attempt.
    pub fn repeat(&self, run: &Run, at: AttemptRef, outcome: &ReportedOutcome) -> Repeat {
        self.end.as_ref().map_or(Repeat::New, |end| end.repeat(run, at, outcome, self.output))
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

    /// What has become of an attempt that is over, as far as a report of it can be compared with that. Refuses a session that did not
    /// have the attempt.
    pub(super) async fn history_of(
        &self,
        session: SessionId,
        at: AttemptRef,
        outcome: &ReportedOutcome,
    ) -> Result<AttemptHistory, EngineError> {
        let end = self.ending_of(session, at).await?;
        let output = match end.as_ref().and_then(AttemptEnding::done_seq) {
            Some(seq) => self.compared_output(at, seq, outcome).await?,
            None => None,
        };
        Ok(AttemptHistory { end, output })
    }

    /// How the attempt of this session has ended.
    async fn ending_of(&self, session: SessionId, at: AttemptRef) -> Result<Option<AttemptEnding>, EngineError> {
        let AttemptRef { position, attempt, .. } = at;
        let (mut after, mut has_begun, mut end) = (0, false, None::<AttemptEnding>);
        loop {
            let records = self.0.0.store.events(at.tenant, at.run, after, EVENTS_AT_ONCE).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            for record in &records {
                let Ok(event) = record.event.decode::<Event>() else { continue };
                if let Some(known) = &mut end {
                    known.hear(&event, record.seq, (position, attempt));
                } else if has_begun {
                    end = AttemptEnding::of(&event, (record.seq, record.at), position);
                } else if let Event::StepStarted { step, attempt: begun, session: holder, .. } = event
                    && (step, begun) == (position, attempt)
                {
                    if holder != session {
                        return Err(not_its_own(at));
                    }
                    has_begun = true;
                }
            }
            if end.as_ref().is_some_and(AttemptEnding::is_settled) {
                break;
            }
        }
        if has_begun { Ok(end) } else { Err(not_its_own(at)) }
    }

    /// The output that is kept of an attempt, beside the one that is reported now.
    async fn compared_output(
        &self,
        at: AttemptRef,
        seq: u64,
        outcome: &ReportedOutcome,
    ) -> Result<Option<ComparedOutput>, EngineError> {
        let attempt = (at.position, at.attempt);
        let kept = self.0.0.store.attempt_output(at.tenant, at.run, attempt, seq).await?;
        Ok(kept.map(|kept| ComparedOutput {
            is_same: match (&kept.output, outcome) {
                (Some(kept), ReportedOutcome::Completed { output }) => self.0.is_same_value(kept, output),
                _ => false,
            },
            is_resolved: kept.is_resolved,
        }))
    }
}
