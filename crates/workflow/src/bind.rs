//! Binding: before a command is decided, the conditions and templates of the steps that it may activate are evaluated
//! here, so that `decide` stays pure. [`Facts`] is all that an evaluation looks at, owned, so that it can run anywhere.

use std::sync::Arc;

use interlock_core::approval::Vote;
use interlock_core::decide::{Bindings, Bound, Command, Outcome, first_rewound};
use interlock_core::ids::RunId;
use interlock_core::json::{Json, NUL};
use interlock_core::limits;
use interlock_core::machine::step::{Resolution, Verdict};
use interlock_core::plan::{Gate, Plan, StepSpec, WaitFor, Work};
use interlock_core::retry::{ErrorClass, StepError};
use interlock_core::run::{Header, Phase, Run, Step};
use interlock_core::state::{StepKind, StepState};
use interlock_core::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::expression::budget::Budget;
use crate::expression::{self, Scope};

/// Which steps a command may activate: those from a position on, given one more output than the run holds.
struct Activation {
    from: u32,
    output: Option<(u32, Json)>,
    /// The step at `from` is activated again, whatever its state.
    again: bool,
}

fn activation(run: &Run, command: &Command, now: Timestamp) -> Option<Activation> {
    let after = |position: u32, output: Json| {
        Some(Activation { from: position + 1, output: Some((position, output)), again: false })
    };
    match command {
        Command::Complete(completion) => match &completion.outcome {
            Outcome::Completed { output } => after(completion.position, output.clone()),
            _ => None,
        },
        Command::Wake { position, payload, .. } if run.spec(*position).kind() == StepKind::Wait => {
            after(*position, payload.clone())
        }
        Command::Tick => match &run.current().phase {
            Phase::WaitingSignal(wait) if wait.signal.is_none() && wait.deadline_at.is_some_and(|at| at <= now) => {
                after(run.position, Json::null())
            }
            _ => None,
        },
        Command::Vote { position, voter, approve: true, .. } => match &run.current().phase {
            Phase::WaitingApproval(approval) => {
                let vote =
                    Vote { person: voter.person.clone(), on_behalf_of: None, approve: true, notes: None, at: now };
                let voted = approval.vote(voter, vote).ok()?;
                after(*position, voted.output())
            }
            _ => None,
        },
        Command::Resolve { position, resolution: Resolution::Happened, output, .. } => {
            after(*position, output.clone().unwrap_or_else(Json::null))
        }
        Command::Admit => Some(Activation { from: 0, output: None, again: false }),
        Command::Skip { .. } => Some(Activation { from: run.position + 1, output: None, again: false }),
        Command::Retry { .. } => Some(Activation { from: run.position, output: None, again: true }),
        Command::RestartFrom { position } => {
            Some(Activation { from: first_rewound(run, *position), output: None, again: true })
        }
        _ => None,
    }
}

/// Whether the step at this position, or the one that follows if it is skipped, has anything to evaluate.
fn needs_binding(plan: &Plan, from: u32) -> bool {
    plan.steps.get(from as usize).is_some_and(has_expressions)
}

fn has_expressions(spec: &StepSpec) -> bool {
    let dynamic = |template: &Option<Json>| template.as_ref().is_some_and(|with| expression::is_dynamic(with.as_str()));
    spec.condition.is_some()
        || match &spec.work {
            Work::Task { with, .. } => with.is_some(),
            Work::Transform { .. } | Work::Wait { until: WaitFor::Until(_), .. } => true,
            Work::Connector { with, .. } | Work::Model { with, .. } | Work::Rollback { with, .. } => dynamic(with),
            Work::Wait { until: WaitFor::Signal { key, .. }, .. } => {
                key.as_ref().is_some_and(|key| expression::is_dynamic(key))
            }
            Work::Approval(gate) => gate.message.as_ref().is_some_and(|message| expression::is_dynamic(message)),
            Work::Wait { .. } | Work::Command { .. } => false,
        }
}

/// All that an evaluation looks at, owned, so that it can run on another thread.
pub struct Facts {
    id: RunId,
    header: Arc<Header>,
    plan: Arc<Plan>,
    steps: Vec<Step>,
    activation: Activation,
}

impl Facts {
    /// What a command on a run has to have evaluated; nothing if there are no expressions on its way.
    pub fn for_command(run: &Run, command: &Command, now: Timestamp) -> Option<Self> {
        let activation = activation(run, command, now)?;
        // Steps whose results were inherited are passed over.
        let pending = |position: &u32| run.steps[*position as usize].state() == StepState::Pending;
        let next = (activation.from..run.forward_len() as u32).find(pending);
        let first = if activation.again { activation.from } else { next.unwrap_or(activation.from) };
        if run.spec(run.position).kind() == StepKind::Rollback || !needs_binding(&run.plan, first) {
            return None;
        }
        Some(Self {
            id: run.id,
            header: Arc::clone(&run.header),
            plan: Arc::clone(&run.plan),
            steps: run.steps[..run.forward_len()].to_vec(),
            activation,
        })
    }

    /// The same for a run that is being made.
    pub fn for_start(id: RunId, header: &Header, plan: &Arc<Plan>, inherited: &[(u32, Step)]) -> Option<Self> {
        let mut steps = vec![Step::default(); plan.steps.len()];
        for (position, step) in inherited {
            steps[*position as usize] = step.clone();
        }
        let first = steps.iter().position(|step| step.state() == StepState::Pending).unwrap_or(0);
        if !needs_binding(plan, first as u32) {
            return None;
        }
        let activation = Activation { from: first as u32, output: None, again: false };
        Some(Self { id, header: Arc::new(header.clone()), plan: Arc::clone(plan), steps, activation })
    }

    /// The first step that is looked at.
    pub fn position(&self) -> u32 {
        self.activation.from
    }

    /// The inputs and outputs that expressions see.
    pub fn payloads(&self) -> impl Iterator<Item = &Json> {
        let fresh = self.activation.output.iter().map(|(_, output)| output);
        let steps = self.steps.iter().filter_map(|step| step.output.as_ref());
        std::iter::once(&self.header.inputs).chain(fresh).chain(steps)
    }

    /// Puts something else in the place of some of them.
    pub fn replace_payloads(&mut self, replacement: impl Fn(&Json) -> Option<Json>) {
        if let Some(inputs) = replacement(&self.header.inputs) {
            Arc::make_mut(&mut self.header).inputs = inputs;
        }
        let fresh = self.activation.output.iter_mut().map(|(_, output)| output);
        for json in fresh.chain(self.steps.iter_mut().filter_map(|step| step.output.as_mut())) {
            if let Some(other) = replacement(json) {
                *json = other;
            }
        }
    }

    pub fn bind(self, budget: &Budget) -> Bindings {
        let mut bindings = Bindings::default();
        let scope = match self.scope(budget) {
            Ok(scope) => scope,
            Err(error) => {
                let bound = Bound::new(Err(error));
                bindings.steps.push((self.activation.from, bound));
                return bindings;
            }
        };
        for (index, spec) in self.plan.steps.iter().enumerate().skip(self.activation.from as usize) {
            let position = index as u32;
            let again = self.activation.again;
            if !again && self.steps[index].state() != StepState::Pending {
                continue;
            }
            if !has_expressions(spec) {
                break;
            }
            let bound = bind_step(spec, &scope).unwrap_or_else(|error| Bound::new(Err(error)));
            let skipped = matches!(bound.verdict, Ok(Verdict::ConditionFalse));
            bindings.steps.push((position, bound));
            if !skipped {
                break;
            }
        }
        bindings
    }

    fn scope(&self, budget: &Budget) -> Result<Scope, StepError> {
        let exact = |what: String, json: &Json| {
            json.to_exact_value().map_err(|error| {
                StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", format!("{what} cannot be used: {error}"))
            })
        };
        let mut steps = Map::new();
        for (index, (spec, step)) in self.plan.steps.iter().zip(&self.steps).enumerate() {
            let fresh =
                self.activation.output.as_ref().filter(|(at, _)| *at as usize == index).map(|(_, output)| output);
            // What a resumed run keeps of a later step is passed over, and is known all the same.
            let kept = !self.activation.again && step.state().is_finished();
            let is_past = kept || index < self.activation.from as usize;
            let known = fresh.or(if is_past { step.result() } else { None });
            let state = if fresh.is_some() { StepState::Succeeded } else { step.state() };
            if let Some(output) = known {
                let output = exact(format!("the output of step `{}`", spec.key), output)?;
                steps.insert(spec.key.clone(), json!({ "output": output, "state": state }));
            } else if is_past {
                steps.insert(spec.key.clone(), json!({ "output": null, "state": state }));
            }
        }
        let mut scope = Map::new();
        scope.insert("inputs".into(), exact("an input of the run".to_owned(), &self.header.inputs)?);
        scope.insert("steps".into(), Value::Object(steps));
        scope.insert(
            "run".into(),
            json!({
                "id": self.id,
                "subject": self.header.subject,
                "workspace": self.header.workspace,
                "labels": self.header.labels,
                "workflow": self.plan.workflow,
                "version": self.plan.version,
            }),
        );
        Ok(Scope::new(scope, budget))
    }
}

fn bind_step(spec: &StepSpec, scope: &Scope) -> Result<Bound, StepError> {
    let mut bound = Bound::new(Ok(Verdict::Go));
    if let Some(source) = &spec.condition
        && !expression::condition(source, scope)?
    {
        bound.verdict = Ok(Verdict::ConditionFalse);
        return Ok(bound);
    }
    match &spec.work {
        Work::Task { with: Some(template), .. }
        | Work::Transform { value: template }
        | Work::Connector { with: Some(template), .. }
        | Work::Model { with: Some(template), .. } => bound.input = Some(render(template, scope)?),
        Work::Wait { until: WaitFor::Signal { key: Some(key), .. }, .. } => {
            let key = text(expression::render_text(key, scope)?);
            if key.contains(NUL) {
                let message = "the key of the wait holds a NUL character";
                return Err(StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message));
            }
            bound.wait_key = Some(key);
        }
        Work::Approval(Gate { message: Some(message), .. }) => {
            bound.message = Some(text(expression::render_text(message, scope)?));
        }
        Work::Wait { until: WaitFor::Until(template), .. } => {
            bound.wait_until = Some(instant(&expression::render_text(template, scope)?)?);
        }
        _ => {}
    }
    Ok(bound)
}

fn render(template: &Json, scope: &Scope) -> Result<Json, StepError> {
    let invalid = |message: String| StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message);
    if !expression::is_dynamic(template.as_str()) {
        return Ok(template.clone());
    }
    let value = template.to_value().map_err(|error| invalid(error.to_string()))?;
    let rendered = Json::of(&expression::render(&value, scope)?).map_err(|error| invalid(error.to_string()))?;
    if rendered.len() > limits::PAYLOAD_BYTES_MAX {
        let (bytes, max) = (rendered.len(), limits::PAYLOAD_BYTES_MAX);
        return Err(invalid(format!("the rendered input is {bytes} bytes long, the limit is {max}")));
    }
    Ok(rendered)
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn instant(value: &Value) -> Result<Timestamp, StepError> {
    let invalid = || {
        let message = format!("{value} is not an instant: expected RFC 3339 text or Unix milliseconds");
        StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message)
    };
    match value {
        Value::Number(number) => number.as_i64().map(Timestamp).ok_or_else(invalid),
        Value::String(text) => match text.parse::<i64>() {
            Ok(millis) => Ok(Timestamp(millis)),
            Err(_) => text.parse::<jiff::Timestamp>().map(|at| Timestamp(at.as_millisecond())).map_err(|_| invalid()),
        },
        _ => Err(invalid()),
    }
}
