//! What a worker reports, and the next step that it gets with the answer. Repeating a report is harmless.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::cost::Cost;
use interlock_core::decide::{Command, Completion, Outbound, Outcome, Repeat};
use interlock_core::failpoint::{Failpoint, reached};
use interlock_core::ids::SessionId;
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::state::FaultCheck;
use interlock_core::work::credential::{self, CredentialUsed};
use interlock_core::work::{Assignment, AttemptRef, Claimer, Report, ReportedOutcome};
use interlock_evidence::credentials::{CREDENTIALS_USED, CredentialFacts};

use super::holder::{AttemptHistory, HeldBy, not_its_own};
use super::late::{LateReport, RELEASED, is_late_release, is_too_late, result_of};
use crate::cells::{Cell, Streak};
use crate::dispatch::session::SessionInfo;
use crate::error::EngineError;
use crate::execute::Facts;
use crate::parts::Workers;

/// The answer to a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Completed {
    /// The run's next step, claimed in the same commit for the same session.
    pub next: Option<Assignment>,
    /// False if the report had been recorded before: this is the first answer again.
    pub recorded: bool,
}

impl Workers {
    #[boxed]
    pub async fn complete(&self, session: SessionId, report: Report) -> Result<Completed, EngineError> {
        reached(Failpoint::ServerBeforeCompletion);
        let (run, unconfined) = (report.at.run, unconfined(&report.outcome));
        let recorded = self.record(session, report).await;
        reached(Failpoint::ServerAfterCompletion);
        let mut completed = recorded?;
        if let Some(why) = unconfined.filter(|_| completed.recorded) {
            self.failed_attestation(session, run, &why).await;
        }
        if let Some(next) = completed.next.take() {
            completed.next = self.0.with_payloads(session, vec![next]).await.pop();
        }
        Ok(completed)
    }

    /// Records a report. The next step, if any, may still hold references for payloads.
    pub(crate) async fn record(&self, session: SessionId, report: Report) -> Result<Completed, EngineError> {
        let Report { at, epoch, outcome, claim_next, cost, credentials } = report;
        if epoch != self.0.0.epoch {
            return Err(EngineError::StaleEpoch);
        }
        let info = self.speaks_for(session, at).await?;
        credential::check(&credentials).map_err(|what| Rejection::InvalidInput { what })?;
        let fetched = credentials.clone();
        let context = naming(at, credentials)?;
        if claim_next {
            self.follow_flag(&info).await?;
        }
        let result = result_of(&outcome);
        let goes_on = claim_next && info.takes_new();
        let (outcome, refused) = self.0.addressed(at, outcome).await?;
        // Looked up once the attempt is over: what was reported of it first stands.
        let mut history: Option<AttemptHistory> = None;
        loop {
            let completed = self
                .0
                .execute(
                    at.tenant,
                    at.run,
                    context.clone(),
                    |facts| {
                        let run = facts.run();
                        let held_by = HeldBy::of(run, at);
                        if held_by.is_another_than(session) {
                            return Err(not_its_own(at));
                        }
                        if held_by == HeldBy::NoSession {
                            let Some(history) = &history else { return Ok(ControlFlow::Break(None)) };
                            match history.repeat(run, at, &outcome) {
                                Repeat::Same => {
                                    return Ok(ControlFlow::Break(Some(self.first_answer(run, at, session))));
                                }
                                Repeat::Other(recorded) => return Err(reported_otherwise(at, recorded)),
                                Repeat::New => {}
                            }
                        }
                        if let Some(refused) = &refused {
                            return Err(refused.clone().into());
                        }
                        let claim_next = (goes_on && self.may_go_on(facts, &info))
                            .then(|| Claimer { session, skills: Arc::clone(&info.skills) });
                        // A second look after a conflict needs the outcome again.
                        let rest = Rest { claim_next, cost: cost.clone() };
                        Ok(ControlFlow::Continue(command(facts, at, outcome.clone(), rest)))
                    },
                    |cell, change| {
                        self.0.0.counters.fetched(&fetched);
                        let next = self.next_of(cell, session);
                        if next.is_none() {
                            self.0.0.dispatch.freed(session);
                        }
                        cell.streak = match &next {
                            Some(_) if cell.streak.steps > 0 => Streak { steps: cell.streak.steps + 1, ..cell.streak },
                            _ => Streak { steps: 1, since: change.at },
                        };
                        Some(Completed { next, recorded: true })
                    },
                )
                .await;
            if let (Err(EngineError::Rejected(why)), Some(known)) = (&completed, &history)
                && is_too_late(why)
            {
                // The same report may have come another way meanwhile.
                let now = Box::pin(self.history_of(session, at, &outcome)).await?;
                if now != *known {
                    history = Some(now);
                    continue;
                }
                // Of a command that was stopped when its worker came back nothing else is ever heard.
                let begun = is_late_release(&outcome, why) && Box::pin(self.may_have_begun(at)).await;
                if let Some(result) = result.or(begun.then_some(RELEASED)) {
                    self.late_report(&info, LateReport { at, receipt: None, result }, why).await;
                }
            }
            if let Some(completed) = completed? {
                return Ok(completed);
            }
            // The attempt is over: a late report is as good as one in time, if it comes from the session that had the
            // attempt.
            history = Some(Box::pin(self.history_of(session, at, &outcome)).await?);
        }
    }

    /// The worker has left a step out of its heartbeats: it goes back, and no failure is charged.
    #[boxed]
    pub async fn left_out(&self, at: AttemptRef) -> Result<(), EngineError> {
        let AttemptRef { tenant, run, position, attempt } = at;
        self.0
            .execute(
                tenant,
                run,
                Context::SYSTEM,
                |_| Ok(ControlFlow::Continue(Command::LeftOut { position, attempt })),
                |_, _| (),
            )
            .await
    }

    /// The claim has never reached its worker: it goes back, and nothing was done.
    pub(crate) async fn undelivered(&self, at: AttemptRef) -> Result<(), EngineError> {
        let AttemptRef { tenant, run, position, attempt } = at;
        let command = |_: &Facts<'_>| Ok(ControlFlow::Continue(Command::Undelivered { position, attempt }));
        self.0.execute(tenant, run, Context::SYSTEM, command, |_, _| ()).await
    }

    fn next_of(&self, cell: &Cell, session: SessionId) -> Option<Assignment> {
        let run = cell.run.as_deref()?;
        if run.state.is_terminal() || run.current().session() != Some(session) {
            return None;
        }
        self.0.assignment(run)
    }

    /// The answer that the first report got: the step claimed with it, or the next attempt of the same one, if the session still
    /// holds that.
    fn first_answer(&self, run: &Run, at: AttemptRef, session: SessionId) -> Completed {
        let is_another = (run.position, run.current().attempt) != (at.position, at.attempt);
        let holds = !run.state.is_terminal() && is_another && run.current().session() == Some(session);
        Completed { next: if holds { self.0.assignment(run) } else { None }, recorded: false }
    }

    /// A worker continues one run for a while; after that, others come first if they wait.
    fn may_go_on(&self, facts: &Facts<'_>, info: &SessionInfo) -> bool {
        let streak = facts.cell.streak;
        let now = self.0.now();
        let long = streak.steps >= limits::CONTINUE_STEPS_MAX || now.since(streak.since) >= limits::CONTINUE_TIME_MAX;
        !long || !self.0.0.dispatch.wait_behind(facts.run(), info, now)
    }
}

/// The system's doing, with the credentials that the attempt was given: they stand beside whatever became of it.
fn naming(at: AttemptRef, credentials: Vec<CredentialUsed>) -> Result<Context, EngineError> {
    if credentials.is_empty() {
        return Ok(Context::SYSTEM);
    }
    let facts = credentials.into_iter().map(|used| CredentialFacts {
        position: at.position,
        attempt: at.attempt,
        credential_id: used.credential_id,
        vault_request_id: used.vault_request_id,
        lease_id: used.lease_id,
        fetched_at: used.fetched_at,
        revoked_at: used.revoked_at,
    });
    let metadata = Json::of(&BTreeMap::from([(CREDENTIALS_USED, facts.collect::<Vec<_>>())]))
        .map_err(|error| EngineError::Store(error.to_string()))?;
    Ok(Context { metadata: Some(metadata), ..Context::SYSTEM })
}

/// The refusal for a worker that says something else of an attempt than it has said before.
fn reported_otherwise(at: AttemptRef, recorded: &'static str) -> EngineError {
    let AttemptRef { run, position, attempt, .. } = at;
    Rejection::ReportedOtherwise { run, position, attempt, recorded }.into()
}

/// Why a command could not be confined, where that is what kept it from being run.
fn unconfined(outcome: &ReportedOutcome) -> Option<String> {
    match outcome {
        ReportedOutcome::Retry { error, .. } | ReportedOutcome::Dead { error } => {
            FaultCheck::of_command(error).map(|_| error.message.clone())
        }
        _ => None,
    }
}

/// What a report says beside its outcome.
struct Rest {
    claim_next: Option<Claimer>,
    cost: Option<Box<Cost>>,
}

fn command(facts: &Facts<'_>, at: AttemptRef, outcome: ReportedOutcome, rest: Rest) -> Command {
    let Rest { claim_next, cost } = rest;
    let AttemptRef { position, attempt, .. } = at;
    let run = facts.run();
    let outcome = match outcome {
        ReportedOutcome::Completed { output } => Outcome::Completed { output },
        ReportedOutcome::Waiting { signal, key, timeout, outbound } => Outcome::Waiting {
            signal,
            key: key.or_else(|| run.header.subject.clone()).unwrap_or_else(|| run.id.to_string()),
            timeout,
            outbound: outbound
                .into_iter()
                .map(|message| Outbound { destination: message.destination, payload: message.payload })
                .collect(),
        },
        ReportedOutcome::Retry { error, backoff } => Outcome::Retry { error, backoff },
        ReportedOutcome::Dead { error } => Outcome::Dead { error },
        ReportedOutcome::Released => return Command::Release { position, attempt, cost },
        ReportedOutcome::UnknownTask => return Command::UnknownTask { position, attempt },
    };
    Command::Complete(Completion { position, attempt, outcome, claim_next, cost })
}
