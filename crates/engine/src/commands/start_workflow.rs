//! Starting a run by the workflow's name: its newest version or a given one, its inputs checked and completed, its
//! subject and labels evaluated, and what its definition says about a busy subject.

use std::collections::BTreeMap;
use std::sync::Arc;

use interlock_boxed::boxed;
use interlock_core::governance::stricter::Stricter;
use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json, canonical_hash};
use interlock_core::plan::rules::OnConflict;
use interlock_core::rejection::Rejection;
use interlock_core::run::Trigger;
use interlock_core::run::change::Context;
use interlock_core::trace::TraceContext;
use interlock_workflow::definition::Subject;
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::expression::{self, Scope};
use interlock_workflow::shape::TextTemplate;
use serde_json::{Map, Value};

use crate::commands::start::{IdempotencyKey, StartRun, Started};
use crate::encoded_plan::EncodedPlan;
use crate::error::EngineError;
use crate::parts::Runs;
use crate::workflows::WorkflowVersion;

/// Searchable inputs are labels under this prefix.
pub const INPUT_LABEL: &str = "input.";

/// A request to start a run of a workflow.
#[derive(Debug, Clone)]
pub struct StartWorkflow {
    pub tenant: TenantId,
    pub workflow: String,
    /// The newest one where omitted.
    pub version: Option<u32>,
    pub inputs: Json,
    pub workspace: Option<String>,
    /// Instead of what the definition says.
    pub subject: Option<String>,
    /// Instead of what the definition says about a busy subject.
    pub on_conflict: Option<OnConflict>,
    /// Beside those of the definition; the same name here wins.
    pub labels: BTreeMap<String, String>,
    /// Rules beyond those of the definition.
    pub stricter: Stricter,
    pub priority: Option<i32>,
    pub trigger: Trigger,
    pub started_by: Option<String>,
    pub idempotency: Option<IdempotencyKey>,
    /// What makes two requests the same one, where that is not what stands here.
    pub fingerprint: Option<Hash>,
    /// The W3C trace context of the request.
    pub trace: TraceContext,
    pub by: Context,
}

impl StartWorkflow {
    pub fn new(tenant: TenantId, workflow: impl Into<String>, inputs: Json) -> Self {
        Self {
            tenant,
            workflow: workflow.into(),
            version: None,
            inputs,
            workspace: None,
            subject: None,
            on_conflict: None,
            labels: BTreeMap::new(),
            stricter: Stricter::default(),
            priority: None,
            trigger: Trigger { kind: "api".into(), reference: None },
            started_by: None,
            idempotency: None,
            fingerprint: None,
            trace: TraceContext::default(),
            by: Context::SYSTEM,
        }
    }

    /// What makes two requests the same one: what was asked, not which version was the newest then.
    fn fingerprint(&self, inputs: &Value) -> Result<Hash, EngineError> {
        if let Some(fingerprint) = self.fingerprint {
            return Ok(fingerprint);
        }
        let request = serde_json::json!({
            "workflow": self.workflow,
            "version": self.version,
            "inputs": inputs,
            "workspace": self.workspace,
            "subject": self.subject,
            "on_conflict": self.on_conflict,
            "labels": self.labels,
            "priority": self.priority,
        });
        Ok(canonical_hash(&request).map_err(|error| invalid(format!("the input is not JSON: {error}")))?)
    }
}

fn invalid(what: String) -> Rejection {
    Rejection::InvalidInput { what }
}

/// The plan under the rules that a start asks for.
fn plan_under(plan: &Arc<EncodedPlan>, stricter: &Stricter) -> Result<Arc<EncodedPlan>, EngineError> {
    if stricter.is_empty() {
        return Ok(Arc::clone(plan));
    }
    Ok(EncodedPlan::new(plan.plan.under(stricter).map_err(invalid)?)?)
}

impl Runs {
    /// The version that a start takes.
    #[boxed]
    pub async fn workflow_to_start(
        &self,
        tenant: TenantId,
        name: &str,
        version: Option<u32>,
    ) -> Result<Arc<WorkflowVersion>, EngineError> {
        let unknown = || EngineError::UnknownWorkflow { workflow: name.to_owned(), version };
        let (head, newest) = self.0.workflows().head(tenant, name).await?.ok_or_else(unknown)?;
        if head.disabled {
            return Err(EngineError::WorkflowDisabled { workflow: name.to_owned() });
        }
        match version.filter(|version| *version != newest.version) {
            None => Ok(newest),
            Some(version) => self.0.workflows().version(tenant, name, version).await?.ok_or_else(unknown),
        }
    }

    #[boxed]
    pub async fn start_workflow(&self, request: StartWorkflow) -> Result<Started, EngineError> {
        let given = request.inputs.to_exact_value().map_err(|error| invalid(format!("the inputs: {error}")))?;
        let Some(key) = request.idempotency.clone() else { return self.start_bound(request, given).await };
        let (tenant, asked) = (request.tenant, request.fingerprint(&given)?);
        match self.start_bound(StartWorkflow { fingerprint: Some(asked), ..request }, given).await {
            Err(refused) => self.unless_repeated(tenant, Some(&key), asked, refused).await,
            started => started,
        }
    }

    /// Starts a run of the version that the request names, on these inputs.
    #[boxed]
    async fn start_bound(&self, request: StartWorkflow, given: Value) -> Result<Started, EngineError> {
        let workflow = self.workflow_to_start(request.tenant, &request.workflow, request.version).await?;
        let bound = self.bind_inputs(request.tenant, &workflow, given).await?;
        let mut labels: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in workflow.inputs.searchable(&bound) {
            labels.insert(format!("{INPUT_LABEL}{name}"), value);
        }
        let inputs = Json::of(&bound).map_err(|error| invalid(format!("the inputs are not JSON: {error}")))?;
        let definition = &workflow.definition;
        let subject = definition.subject.as_ref().map(|subject| &subject.key).filter(|_| request.subject.is_none());
        let texts: Vec<&TextTemplate> =
            subject.into_iter().chain(definition.labels.0.iter().map(|(_, text)| text)).collect();
        let mut rendered = self.render(request.tenant, &texts, bound).await?.into_iter();
        let subject = if subject.is_some() { rendered.next() } else { request.subject };
        labels.extend(definition.labels.0.iter().map(|(key, _)| key.name.clone()).zip(rendered));
        labels.extend(request.labels);

        let mut start = StartRun::new(request.tenant, plan_under(&workflow.plan, &request.stricter)?, inputs);
        start.workspace = request.workspace.unwrap_or(start.workspace);
        // An expression that gives nothing names no subject.
        start.subject = subject.filter(|subject| !subject.is_empty());
        start.labels = labels;
        start.priority = request.priority.or(definition.priority).unwrap_or(0);
        start.trigger = request.trigger;
        start.started_by = request.started_by;
        start.idempotency = request.idempotency;
        start.fingerprint = request.fingerprint;
        start.trace = request.trace;
        start.by = request.by;
        let declared = definition.subject.as_ref().map(Subject::on_conflict);
        start.on_conflict = request.on_conflict.or(declared).unwrap_or(OnConflict::Reject);
        self.start(start).await
    }

    /// The inputs as the run gets them. Looking for patterns in long texts takes a while, and is done off this thread.
    pub(crate) async fn bind_inputs(
        &self,
        tenant: TenantId,
        workflow: &Arc<WorkflowVersion>,
        given: Value,
    ) -> Result<Value, EngineError> {
        let bound = if workflow.inputs.have_patterns() {
            let workflow = Arc::clone(workflow);
            self.0.evaluate_trigger(tenant, move |budget| workflow.inputs.bind(&given, budget)).await?
        } else {
            workflow.inputs.bind(&given, &Budget::default())
        };
        Ok(bound.map_err(|faults| invalid(faults.to_string()))?)
    }

    /// Texts over the inputs. Those that only look something up are rendered in place.
    async fn render(
        &self,
        tenant: TenantId,
        texts: &[&TextTemplate],
        inputs: Value,
    ) -> Result<Vec<String>, EngineError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let mut scope = Map::new();
        scope.insert("inputs".into(), inputs);
        let scope = Scope::new(scope, &Budget::default());
        let quick: Option<Vec<Value>> = texts.iter().map(|text| expression::look_up(&text.0, &scope)).collect();
        let values = if let Some(values) = quick {
            values
        } else {
            let texts: Vec<String> = texts.iter().map(|text| text.0.value.clone()).collect();
            let render = move |budget: &Budget| {
                let scope = scope.within(budget);
                texts.iter().map(|text| expression::render_text(text, &scope)).collect::<Result<Vec<Value>, _>>()
            };
            let rendered = self.0.evaluate_trigger(tenant, render).await?;
            rendered.map_err(|error| invalid(error.message))?
        };
        Ok(values
            .into_iter()
            .map(|value| match value {
                Value::String(text) => text,
                Value::Null => String::new(),
                other => other.to_string(),
            })
            .collect())
    }
}
