//! Where payloads come back into sight: a worker gets what its step is given, a wait what its signal brought.

use interlock_boxed::boxed;
use interlock_core::ids::{SessionId, SignalId, TenantId};
use interlock_core::json::Json;
use interlock_core::state::StepKind;
use interlock_core::work::{Assignment, Report, ReportedOutcome};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{PayloadError, Payloads};
use crate::Engine;
use crate::error::EngineError;

/// What a rollback is given: texts of the step that it undoes stand inside its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Undoing<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow)]
    output: &'a RawValue,
    #[serde(borrow)]
    with: &'a RawValue,
}

impl Payloads {
    async fn fill(&self, assignment: &mut Assignment) -> Result<(), PayloadError> {
        let tenant = assignment.at.tenant;
        if assignment.kind == StepKind::Rollback {
            assignment.input = self.fill_undoing(tenant, &assignment.input).await?;
        }
        if self.mark.is_on(&assignment.input) {
            assignment.input = self.fetch(tenant, &assignment.input).await?;
        }
        if let Some(payload) = assignment.payload.as_mut().filter(|payload| self.mark.is_on(payload)) {
            *payload = self.fetch(tenant, payload).await?;
        }
        Ok(())
    }

    async fn fill_undoing(&self, tenant: TenantId, input: &Json) -> Result<Json, PayloadError> {
        let Ok(Undoing { input: given, output, with }) = input.decode::<Undoing<'_>>() else {
            return Ok(input.clone());
        };
        let (given, output) = (Json::trusted(given.get()), Json::trusted(output.get()));
        if !self.mark.is_on(&given) && !self.mark.is_on(&output) {
            return Ok(input.clone());
        }
        let (given, output) = (self.fetch(tenant, &given).await?, self.fetch(tenant, &output).await?);
        let (given, output) = (given.as_str(), output.as_str());
        Ok(Json::trusted(format!(r#"{{"input":{given},"output":{output},"with":{}}}"#, with.get())))
    }
}

impl Engine {
    /// Assignments with their payloads in place. A step whose payload cannot be had fails with that, or is tried again
    /// later where the payload store only does not answer; no worker is handed a reference instead.
    pub(crate) async fn with_payloads(&self, session: SessionId, assignments: Vec<Assignment>) -> Vec<Assignment> {
        let Some(payloads) = self.payloads() else { return assignments };
        let mut ready = Vec::with_capacity(assignments.len());
        for mut assignment in assignments {
            let error = match payloads.fill(&mut assignment).await {
                Ok(()) => {
                    ready.push(assignment);
                    continue;
                }
                Err(error) => error,
            };
            let Assignment { at, epoch, kind, .. } = assignment;
            tracing::warn!(run = %at.run, %error, "a step cannot be given its payload");
            let outcome = if error.is_transient() {
                ReportedOutcome::Retry { error: error.step_error(), backoff: None }
            } else {
                ReportedOutcome::Dead { error: error.step_error() }
            };
            // No worker has asked the model, and a model step that says nothing of a cost has an unknown one.
            let cost = (kind == StepKind::Model).then(Box::default);
            let report = Report { at, epoch, outcome, claim_next: false, cost, credentials: Vec::new() };
            if let Err(error) = self.workers().record(session, report).await {
                tracing::warn!(run = %at.run, %error, "that could not be recorded; the step's lease will expire");
            }
        }
        ready
    }

    /// A signal's payload, as it goes into its row.
    pub(crate) async fn put_aside(&self, tenant: TenantId, owner: SignalId, json: Json) -> Result<Json, EngineError> {
        match self.payloads() {
            Some(payloads) => payloads.keep(tenant, owner.into(), &json, self.now()).await,
            None => Ok(json),
        }
    }

    /// A payload as it was sent. One that is lost stays a reference, so that a reader that needs it is told; the run
    /// goes on.
    #[boxed]
    pub async fn at_hand(&self, tenant: TenantId, json: Json) -> Result<Json, EngineError> {
        let Some(payloads) = self.payloads() else { return Ok(json) };
        match payloads.fetch(tenant, &json).await {
            Err(PayloadError::Missing { .. } | PayloadError::Altered { .. }) => Ok(json),
            other => Ok(other?),
        }
    }
}
