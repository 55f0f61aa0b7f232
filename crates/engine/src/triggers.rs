//! From what happened outside to the workflows it starts: which triggers take it, what their runs are given, and
//! starting each run once.

use std::sync::Arc;

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::rejection::Rejection;
use interlock_core::trigger::Source;
use interlock_workflow::definition::{Input, Triggers};
use interlock_workflow::expression::budget::Budget;
use interlock_workflow::expression::{self, Scope};
use interlock_workflow::shape::{At, Expression, Map, Name, Template};
use serde_json::{Value, json};

use crate::error::EngineError;
use crate::workflows::WorkflowVersion;
use crate::{Engine, StartWorkflow};

/// Workflows that are looked at for one event, page by page.
const PAGE: usize = 200;

/// Something that happened outside: the occasion on which workflows start.
#[derive(Debug, Clone)]
pub(crate) struct TriggerEvent {
    pub kind: Kind,
    /// What happened, in the sender's own word.
    pub event: String,
    pub payload: Value,
    pub key: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Webhook {
        source: Source,
        endpoint: String,
    },
    /// A signal of this type came in.
    Signal,
    /// A request to work on a ticket.
    Ticket,
}

/// A workflow whose trigger takes the occasion, and what its run is given; or why that cannot be said.
#[derive(Debug)]
pub(crate) struct TriggerMatch {
    pub workflow: String,
    pub inputs: Result<Json, String>,
}

impl Engine {
    /// The workflows that take an occasion, each once, by name.
    pub(crate) async fn taken_by(
        &self,
        tenant: TenantId,
        occasion: TriggerEvent,
    ) -> Result<Vec<TriggerMatch>, EngineError> {
        let occasion = Arc::new(occasion);
        let mut taken = Vec::new();
        for version in self.triggered(tenant).await? {
            let occasion = Arc::clone(&occasion);
            taken.extend(self.evaluate_trigger(tenant, move |budget| take(&version, &occasion, budget)).await?);
        }
        Ok(taken)
    }

    /// The workflows that something outside may start, by name.
    pub(crate) async fn triggered(&self, tenant: TenantId) -> Result<Vec<Arc<WorkflowVersion>>, EngineError> {
        let mut triggered = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.0.store.list_workflows(tenant, after.as_deref(), PAGE).await?;
            let full = page.len() == PAGE;
            after = page.last().map(|row| row.name.clone());
            for row in page.into_iter().filter(|row| !row.disabled) {
                let version = self.workflows().latest(tenant, &row.name).await?;
                triggered.extend(version.filter(|version| version.definition.on.is_some()));
            }
            if !full {
                return Ok(triggered);
            }
        }
    }

    /// Values with their expressions replaced.
    pub(crate) async fn render_inputs(
        &self,
        tenant: TenantId,
        template: &Json,
        scope: Value,
    ) -> Result<Json, EngineError> {
        if !expression::is_dynamic(template.as_str()) {
            return Ok(template.clone());
        }
        let invalid = |what: String| EngineError::from(Rejection::InvalidInput { what });
        let template = template.to_exact_value().map_err(|error| invalid(format!("the inputs: {error}")))?;
        let render = move |budget: &Budget| expression::render(&template, &scope_of(scope, budget));
        let rendered = self.evaluate_trigger(tenant, render).await?;
        let rendered = rendered.map_err(|error| invalid(error.message))?;
        Json::of(&rendered).map_err(|error| invalid(error.to_string()))
    }

    /// Starts a run under a key that belongs to this one occasion: whatever stands under it already is that run, also
    /// where the file has changed since, or the record has expired.
    pub(crate) async fn start_keyed(&self, request: StartWorkflow) -> Result<TriggeredRun, EngineError> {
        let key = request.idempotency.clone();
        let tenant = request.tenant;
        match Box::pin(self.runs().start_workflow(request)).await {
            Ok(started) => Ok(TriggeredRun { run: started.run, fresh: !started.replayed }),
            Err(EngineError::IdempotencyExpired { run }) => Ok(TriggeredRun::before(run)),
            Err(EngineError::IdempotencyMismatch) => {
                let record = match &key {
                    Some(key) => self.0.store.idempotency(tenant, &key.client, &key.key).await?,
                    None => None,
                };
                let run = record.and_then(|record| record.run).ok_or(EngineError::IdempotencyMismatch)?;
                Ok(TriggeredRun::before(run))
            }
            Err(error) => Err(error),
        }
    }
}

/// The run of an occasion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TriggeredRun {
    pub run: RunId,
    /// It was started just now.
    pub fresh: bool,
}

impl TriggeredRun {
    const fn before(run: RunId) -> Self {
        Self { run, fresh: false }
    }
}

fn scope_of(scope: Value, budget: &Budget) -> Scope {
    match scope {
        Value::Object(fields) => Scope::new(fields, budget),
        _ => Scope::new(serde_json::Map::new(), budget),
    }
}

/// What expressions of a trigger see.
pub(crate) fn scope(occasion: &TriggerEvent, budget: &Budget) -> Scope {
    let (kind, endpoint) = match &occasion.kind {
        Kind::Webhook { source, endpoint } => (source.as_str(), Some(endpoint)),
        Kind::Signal => ("signal", None),
        Kind::Ticket => ("ticket", None),
    };
    let trigger = json!({ "kind": kind, "endpoint": endpoint, "event": occasion.event, "key": occasion.key });
    scope_of(json!({ "event": occasion.payload, "trigger": trigger }), budget)
}

/// What a run is given whose workflow the caller has named for an occasion, whether or not a trigger of it takes that:
/// by the trigger that does, else by its first one for tickets.
pub(crate) fn given_for_ticket(
    version: &WorkflowVersion,
    occasion: &TriggerEvent,
    budget: &Budget,
) -> Result<Option<Json>, String> {
    if let Some(taken) = take(version, occasion, budget) {
        return taken.inputs.map(Some);
    }
    let first = version.definition.on.as_ref().and_then(|on| on.ticket.0.first());
    first.map(|ticket| given(&ticket.inputs, &scope(occasion, budget))).transpose()
}

/// The first trigger of a workflow that takes the occasion.
fn take(version: &WorkflowVersion, occasion: &TriggerEvent, budget: &Budget) -> Option<TriggerMatch> {
    let on = version.definition.on.as_ref()?;
    let scope = scope(occasion, budget);
    let inputs = match &occasion.kind {
        Kind::Webhook { source, endpoint } => webhook(on, *source, endpoint, occasion, &scope),
        Kind::Signal => signal(on, occasion, &scope),
        Kind::Ticket => {
            on.ticket.0.iter().find(|ticket| passes(ticket.filter.as_ref(), &scope)).map(|ticket| &ticket.inputs)
        }
    }?;
    let inputs = if inputs.0.is_empty() {
        by_name(&version.definition.inputs, &occasion.payload)
    } else {
        given(inputs, &scope)
    };
    Some(TriggerMatch { workflow: version.name.clone(), inputs })
}

/// Without a mapping the run gets the event's fields that are called like its inputs.
fn by_name(declared: &Map<Input>, event: &Value) -> Result<Json, String> {
    let named = declared.0.iter().map(|(name, _)| &name.name);
    let fields: serde_json::Map<_, _> =
        named.filter_map(|name| Some((name.clone(), event.get(name)?.clone()))).collect();
    Json::of(&fields).map_err(|error| error.to_string())
}

fn given(inputs: &Map<Template>, scope: &Scope) -> Result<Json, String> {
    let mut rendered = serde_json::Map::new();
    for (name, template) in &inputs.0 {
        let value = expression::render(&template.to_json(), scope).map_err(|error| error.message)?;
        rendered.insert(name.name.clone(), value);
    }
    Json::of(&rendered).map_err(|error| error.to_string())
}

fn webhook<'a>(
    on: &'a Triggers,
    source: Source,
    endpoint: &str,
    occasion: &TriggerEvent,
    scope: &Scope,
) -> Option<&'a Map<Template>> {
    let here = |named: &Option<At<Name>>| named.as_ref().is_none_or(|name| *name.0 == *endpoint);
    let of = |path: &[&str]| path.iter().try_fold(&occasion.payload, |value, key| value.get(key))?.as_str();
    let named = match source {
        Source::GitHub => on.github.0.iter().find_map(|trigger| {
            let action = of(&["action"]);
            let repository = of(&["repository", "full_name"]);
            let fits = here(&trigger.endpoint)
                && one_of(&trigger.events.0, Some(&occasion.event))
                && one_of(&trigger.actions.0, action)
                && one_of(&trigger.repositories.0, repository)
                && passes(trigger.filter.as_ref(), scope);
            fits.then_some(&trigger.inputs)
        }),
        Source::Slack => on.slack.0.iter().find_map(|trigger| {
            let channels = &trigger.channels.0;
            let here_in =
                |name: Option<&str>| name.is_some_and(|name| channels.iter().any(|known| *known.value == *name));
            let fits = here(&trigger.endpoint)
                && trigger.command.as_ref().is_none_or(|command| command.value == occasion.event)
                && (channels.is_empty() || here_in(of(&["channel_name"])) || here_in(of(&["channel_id"])))
                && passes(trigger.filter.as_ref(), scope);
            fits.then_some(&trigger.inputs)
        }),
        Source::ServiceNow => on.servicenow.0.iter().find_map(|trigger| {
            let table = of(&["table"]).or_else(|| of(&["sys_class_name"])).unwrap_or(&occasion.event);
            let fits = here(&trigger.endpoint)
                && trigger.table.as_ref().is_none_or(|wanted| *wanted.0 == *table)
                && passes(trigger.filter.as_ref(), scope);
            fits.then_some(&trigger.inputs)
        }),
        Source::Generic | Source::Standard => None,
    };
    named.or_else(|| {
        on.webhook.0.iter().find_map(|trigger| {
            let known = |name: &str| name == source.as_str() || name == endpoint;
            let fits = here(&trigger.endpoint)
                && trigger.source.as_ref().is_none_or(|name| known(&name.0))
                && passes(trigger.filter.as_ref(), scope);
            fits.then_some(&trigger.inputs)
        })
    })
}

fn signal<'a>(on: &'a Triggers, occasion: &TriggerEvent, scope: &Scope) -> Option<&'a Map<Template>> {
    on.signal.0.iter().find_map(|trigger| {
        let fits = *trigger.kind.0 == *occasion.event && passes(trigger.filter.as_ref(), scope);
        fits.then_some(&trigger.inputs)
    })
}

pub(crate) fn one_of(wanted: &[At<Name>], found: Option<&str>) -> bool {
    wanted.is_empty() || found.is_some_and(|found| wanted.iter().any(|name| *name.0 == *found))
}

/// A filter that cannot be evaluated, because the event has not what it asks for, does not take the event.
pub(crate) fn passes(filter: Option<&Expression>, scope: &Scope) -> bool {
    let Some(filter) = filter else { return true };
    expression::condition(&filter.0, scope).unwrap_or_else(|error| {
        tracing::debug!(filter = *filter.0, error = error.message, "a trigger's filter does not apply to an event");
        false
    })
}
