//! `GET /runs/{run}/attempts`: which worker had which step when, and what became of it. Read off the run's events.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use interlock_core::cost::Cost;
use interlock_core::ids::SessionId;
use interlock_core::plan::retry::StepError;
use interlock_core::run::event::Event;
use interlock_core::time::Timestamp;
use interlock_core::work::credential::CredentialUsed;
use interlock_evidence::credentials::{CredentialFacts, credentials};
use interlock_protocol::runs::{AttemptList, AttemptOutcome, AttemptView, limits, path};
use interlock_store::EventRecord;

use crate::api_error::ApiError;
use crate::request::NamedRun;
use crate::state::AppState;

/// Events of one run that are read at most.
const EVENTS_MAX: usize = 20_000;

/// Every attempt at the run's steps
///
/// The oldest first; read off the newest 20,000 events of the run at most.
#[utoipa::path(
    get,
    path = path::ATTEMPTS,
    tag = "runs",
    params(NamedRun),
    responses((status = 200, description = "The attempts.", body = AttemptList)),
)]
pub async fn attempts(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
) -> Result<Json<AttemptList>, ApiError> {
    let store = state.for_tenant(tenant);
    let overview = store.run_overview(run).await?.ok_or_else(|| ApiError::unknown_run(run))?;
    let names: HashMap<SessionId, String> =
        store.worker_sessions().await?.into_iter().map(|session| (session.id, session.worker)).collect();
    let keys: Vec<String> = store.steps(run).await?.into_iter().map(|step| step.key).collect();
    let mut told = AttemptHistory { keys: &keys, names: &names, attempts: Vec::new() };
    let mut since = overview.version.saturating_sub(EVENTS_MAX as u64);
    loop {
        let events = store.events(run, since, limits::PAGE_MAX).await?;
        let Some(last) = events.last() else { break };
        since = last.seq;
        for record in events {
            told.hear(&record);
        }
    }
    Ok(Json(AttemptList { attempts: told.attempts }))
}

struct AttemptHistory<'a> {
    keys: &'a [String],
    names: &'a HashMap<SessionId, String>,
    attempts: Vec<AttemptView>,
}

impl AttemptHistory<'_> {
    fn hear(&mut self, record: &EventRecord) {
        let Ok(event) = record.event.decode::<Event>() else { return };
        let at = record.at;
        match event {
            Event::StepStarted { step, attempt, session, .. } => self.attempts.push(AttemptView {
                position: step,
                step: self.keys.get(step as usize).cloned().unwrap_or_default(),
                attempt,
                session_id: session,
                worker: self.names.get(&session).cloned(),
                started_at: at,
                ended_at: None,
                outcome: AttemptOutcome::Running,
                error: None,
                next_at: None,
                cost: None,
                credentials_used: Vec::new(),
            }),
            Event::StepCompleted { step, cost, .. } => {
                self.end(step, at, AttemptOutcome::Completed, None);
                self.cost(step, cost);
            }
            Event::StepFailed { step, error, cost, .. } => {
                self.end(step, at, AttemptOutcome::Failed, Some(error));
                self.cost(step, cost);
            }
            Event::StepRetrying { step, error, eligible_at, cost, .. } => {
                self.end(step, at, AttemptOutcome::Retried, Some(error));
                self.cost(step, cost);
                if let Some(ended) = self.attempts.iter_mut().rev().find(|attempt| attempt.position == step) {
                    ended.next_at = Some(eligible_at);
                }
            }
            Event::StepInDoubt { step, .. } => self.end(step, at, AttemptOutcome::InDoubt, None),
            Event::StepWaiting { step, .. } | Event::ApprovalRequested { step, .. } => {
                self.end(step, at, AttemptOutcome::Waiting, None);
            }
            Event::StepReady { step, .. } => self.end(step, at, AttemptOutcome::GivenBack, None),
            Event::StepSkipped { step, .. } | Event::StepCanceled { step } => {
                self.end(step, at, AttemptOutcome::Canceled, None);
            }
            _ => {}
        }
        self.credentials(record);
    }

    /// The credentials of an attempt stand in the context of the change that ended it, with each of its events.
    fn credentials(&mut self, record: &EventRecord) {
        let Some(Ok(metadata)) = record.context.metadata.as_ref().map(interlock_core::json::Json::to_value) else {
            return;
        };
        let facts = credentials([metadata].iter());
        let Some((position, attempt)) = facts.first().map(|used| (used.position, used.attempt)) else { return };
        let of_attempt = |view: &&mut AttemptView| (view.position, view.attempt) == (position, attempt);
        if let Some(ended) = self.attempts.iter_mut().rev().find(of_attempt) {
            ended.credentials_used = facts.into_iter().map(used).collect();
        }
    }

    /// What the step's last attempt has cost.
    fn cost(&mut self, step: u32, cost: Option<Box<Cost>>) {
        if let (Some(cost), Some(ended)) =
            (cost, self.attempts.iter_mut().rev().find(|attempt| attempt.position == step))
        {
            ended.cost = Some(*cost);
        }
    }

    /// Ends the step's attempt that runs. One that has ended keeps what was said first.
    fn end(&mut self, step: u32, at: Timestamp, outcome: AttemptOutcome, error: Option<StepError>) {
        let running =
            |attempt: &&mut AttemptView| attempt.position == step && attempt.outcome == AttemptOutcome::Running;
        if let Some(attempt) = self.attempts.iter_mut().rev().find(running) {
            attempt.ended_at = Some(at);
            attempt.outcome = outcome;
            attempt.error = error;
        }
    }
}

fn used(facts: CredentialFacts) -> CredentialUsed {
    let CredentialFacts { credential_id, vault_request_id, lease_id, fetched_at, revoked_at, .. } = facts;
    CredentialUsed { credential_id, vault_request_id, lease_id, fetched_at, revoked_at, fetch_ms: None }
}
