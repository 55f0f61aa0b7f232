//! A run for a ticket: of the workflow that is named, else of the one whose `on.ticket` takes the ticket. The ticket is
//! the run's subject, so that one run at a time works on it.

use interlock_boxed::boxed;
use interlock_core::governance::stricter::Stricter;
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::rejection::Rejection;
use interlock_core::run::Trigger;
use interlock_core::run::change::Context;
use interlock_core::trace::TraceContext;
use interlock_workflow::definition::Triggers;
use serde_json::{Map, Value, json};

use crate::StartWorkflow;
use crate::commands::repeated::hash_of;
use crate::commands::start::{IdempotencyKey, Started};
use crate::error::EngineError;
use crate::parts::Runs;
use crate::triggers::{Kind, TriggerEvent, TriggerMatch, given_for_ticket};

/// What causes such a run.
const TRIGGER: &str = "ticket";
/// Workflows that are named to a caller who has to choose one.
const CANDIDATES_MAX: usize = 100;

/// A request to work on a ticket.
#[derive(Debug, Clone)]
pub struct StartForTicket {
    pub tenant: TenantId,
    pub ticket: String,
    /// The workflow; the one that takes the ticket where omitted.
    pub workflow: Option<String>,
    pub stricter: Stricter,
    /// What else is known of the ticket: filters and inputs of `on.ticket` see it.
    pub fields: Map<String, Value>,
    /// Inputs beside those that `on.ticket` gives; the same name here wins.
    pub inputs: Map<String, Value>,
    pub workspace: Option<String>,
    pub started_by: Option<String>,
    pub idempotency: Option<IdempotencyKey>,
    pub trace: TraceContext,
    pub by: Context,
}

fn invalid(what: String) -> EngineError {
    Rejection::InvalidInput { what }.into()
}

impl Runs {
    #[boxed]
    pub async fn start_for_ticket(&self, request: StartForTicket) -> Result<Started, EngineError> {
        if request.ticket.is_empty() || request.ticket.len() > limits::SUBJECT_BYTES_MAX {
            return Err(invalid(format!("`ticket_id` has 1 to {} bytes", limits::SUBJECT_BYTES_MAX)));
        }
        let asked = json!({
            "ticket": request.ticket,
            "workflow": request.workflow,
            "stricter": request.stricter,
            "fields": request.fields,
            "inputs": request.inputs,
            "workspace": request.workspace,
        });
        let fingerprint = hash_of(&asked)?;
        // Which workflow takes a ticket may have changed since: a repeat is answered before workflows are looked at.
        if let Some(first) = self.recorded(request.tenant, request.idempotency.as_ref(), fingerprint).await? {
            return Ok(first);
        }
        let (workflow, inputs) = self.runbook(&request).await?;
        let start = StartWorkflow {
            subject: Some(request.ticket.clone()),
            stricter: request.stricter,
            workspace: request.workspace,
            trigger: Trigger { kind: TRIGGER.into(), reference: Some(request.ticket) },
            started_by: request.started_by,
            idempotency: request.idempotency,
            fingerprint: Some(fingerprint),
            trace: request.trace,
            by: request.by,
            ..StartWorkflow::new(request.tenant, workflow, inputs)
        };
        self.start_workflow(start).await
    }

    /// The workflow for a ticket, and what its run is given.
    async fn runbook(&self, request: &StartForTicket) -> Result<(String, Json), EngineError> {
        let mut fields = request.fields.clone();
        fields.insert("ticket_id".into(), json!(request.ticket));
        fields.insert("environment_profile".into(), json!(request.stricter.profile));
        fields.insert("validation_mode".into(), json!(request.stricter.mode));
        let occasion = TriggerEvent {
            kind: Kind::Ticket,
            event: request.ticket.clone(),
            payload: Value::Object(fields),
            key: request.ticket.clone(),
        };
        let (workflow, given) = if let Some(name) = &request.workflow {
            let version = self.workflow_to_start(request.tenant, name, None).await?;
            let given =
                self.0.evaluate(request.tenant, move |budget| given_for_ticket(&version, &occasion, budget)).await?;
            (name.clone(), given.map_err(invalid)?)
        } else {
            let TriggerMatch { workflow, inputs } = self.only_taker(request, occasion).await?;
            (workflow, Some(inputs.map_err(invalid)?))
        };
        let mut inputs: Map<String, Value> = given
            .map(|given| given.decode())
            .transpose()
            .map_err(|error| invalid(error.to_string()))?
            .unwrap_or_default();
        inputs.extend(request.inputs.clone());
        Ok((workflow, Json::of(&inputs).map_err(|error| invalid(error.to_string()))?))
    }

    async fn only_taker(&self, request: &StartForTicket, occasion: TriggerEvent) -> Result<TriggerMatch, EngineError> {
        let mut taken = self.0.taken_by(request.tenant, occasion).await?;
        if taken.len() == 1
            && let Some(one) = taken.pop()
        {
            return Ok(one);
        }
        let matched = !taken.is_empty();
        let mut candidates: Vec<String> = if matched {
            taken.into_iter().map(|taken| taken.workflow).collect()
        } else {
            let takes_tickets = |on: &Triggers| !on.ticket.0.is_empty();
            let all = self.0.triggered(request.tenant).await?.into_iter();
            let all = all.filter(|version| version.definition.on.as_ref().is_some_and(takes_tickets));
            all.map(|version| version.name.clone()).collect()
        };
        candidates.truncate(CANDIDATES_MAX);
        Err(EngineError::RunbookUnclear { ticket: request.ticket.clone(), matched, candidates })
    }
}
