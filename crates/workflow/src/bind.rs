//! Binding: what [`decide`](interlock_core::decide) asks about a step that is about to begin is evaluated here, so that it
//! stays pure. [`Facts`] is all that an evaluation looks at, owned, so that it can run on another thread.

use std::borrow::Cow;
use std::sync::Arc;

use interlock_connectors::{MODEL_CHAT, bound, find};
use interlock_core::decide::{Asking, Rendered};
use interlock_core::ids::RunId;
use interlock_core::json::{Json, NUL, canonical};
use interlock_core::limits;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{Gate, Plan, StepSpec, WaitFor, Work, bound_command};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::{Header, Step};
use interlock_core::state::StepKind;
use interlock_core::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::expression::budget::Budget;
use crate::expression::{self, SECRET, Scope};

/// What the step's templates come to where nothing has to be evaluated.
pub fn fixed(asking: &Asking<'_>) -> Option<Rendered> {
    if !asking.has_expressions() {
        return Some(Rendered::default());
    }
    // What a connector or a command is given is checked as well, and may be wrong.
    if connector_of(asking.spec()).is_some() || asking.spec().is_command() {
        return None;
    }
    let template = input_template(asking.spec()).filter(|template| !expression::is_dynamic(template.as_str()))?;
    (!asking.has_condition()).then(|| Rendered { input: Some(template.into_owned()), ..Rendered::default() })
}

fn input_template(spec: &StepSpec) -> Option<Cow<'_, Json>> {
    match &spec.work {
        Work::Task { with: Some(template), .. }
        | Work::Transform { value: template }
        | Work::Connector { with: Some(template), .. }
        | Work::Model { with: Some(template), .. } => Some(Cow::Borrowed(template)),
        _ => spec.command_template().map(Cow::Owned),
    }
}

/// Whether a template names steps only as `steps.KEY`, and only such.
fn only_names(template: &str, is_done: impl Fn(&str) -> bool) -> bool {
    template.match_indices("steps").all(|(at, word)| {
        let rest = template[at + word.len()..].strip_prefix('.').unwrap_or_default();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
        // A name that goes on with a minus may be a subtraction: then it is not known.
        is_done(&rest[..end])
    })
}

/// Whether a step's input is known when another step begins: it names only steps before that one.
pub fn is_known_at(plan: &Plan, position: u32, begins: u32) -> bool {
    let is_done = |key: &str| plan.steps.iter().take(begins as usize).any(|step| step.key == key);
    let depends =
        |template: &Json| expression::is_dynamic(template.as_str()) && !only_names(template.as_str(), is_done);
    plan.step(position).is_some_and(|spec| !input_template(spec).as_deref().is_some_and(depends))
}

/// The name of the connector that carries the step out.
fn connector_of(spec: &StepSpec) -> Option<&str> {
    match &spec.work {
        Work::Connector { operation, .. } => Some(operation),
        Work::Model { .. } => Some(MODEL_CHAT),
        _ => None,
    }
}

/// The fields of a connector's operation: checked, complete and canonical, so that what is judged and approved is what is
/// sent.
fn bound_fields(spec: &StepSpec, input: Json) -> Result<Json, StepError> {
    if spec.kind() == StepKind::Command {
        let invalid = |message: String| StepError::new(ErrorClass::Invalid, "COMMAND_INVALID", message);
        let value = input.to_exact_value().map_err(invalid)?;
        return bound_command(value).map_err(invalid);
    }
    let Some(name) = connector_of(spec) else { return Ok(input) };
    let invalid = |message: String| StepError::new(ErrorClass::Invalid, "CONNECTOR_INPUT_INVALID", message);
    let connector = find(name).ok_or_else(|| invalid(format!("there is no connector `{name}`")))?;
    let value = input.to_exact_value().map_err(|error| invalid(format!("`{name}`: {error}")))?;
    let fields = bound(connector, value).map_err(|what| invalid(format!("`{name}`: {what}")))?;
    let text = canonical(&fields.to_value()).map_err(|error| invalid(error.to_string()))?;
    Ok(Json::trusted(String::from_utf8(text).map_err(|error| invalid(error.to_string()))?))
}

/// All that an evaluation looks at.
pub struct Facts {
    id: RunId,
    header: Arc<Header>,
    plan: Arc<Plan>,
    steps: Vec<Step>,
    position: u32,
    has_condition: bool,
}

impl Facts {
    /// What the expressions of the step that is asked about may see: the run, as the command has left it so far.
    pub fn of(asking: &Asking<'_>) -> Self {
        let run = asking.run();
        Self {
            id: run.id,
            header: Arc::clone(&run.header),
            plan: Arc::clone(&run.plan),
            steps: (0..run.forward_len() as u32).map(|position| asking.step(position).clone()).collect(),
            position: asking.position(),
            has_condition: asking.has_condition(),
        }
    }

    /// The same for a later step, where its input does not depend on what other steps will have said by then.
    pub fn of_later(asking: &Asking<'_>, position: u32) -> Option<Self> {
        let facts = Self { position, has_condition: false, ..Self::of(asking) };
        is_known_at(&facts.plan, position, asking.position()).then_some(facts)
    }

    /// The inputs and outputs that expressions see.
    pub fn payloads(&self) -> impl Iterator<Item = &Json> {
        let steps = self.steps.iter().filter_map(|step| step.output.as_ref());
        std::iter::once(&self.header.inputs).chain(steps)
    }

    /// Puts something else in the place of some of them.
    pub fn replace_payloads(&mut self, replacement: impl Fn(&Json) -> Option<Json>) {
        if let Some(inputs) = replacement(&self.header.inputs) {
            Arc::make_mut(&mut self.header).inputs = inputs;
        }
        for json in self.steps.iter_mut().filter_map(|step| step.output.as_mut()) {
            if let Some(other) = replacement(json) {
                *json = other;
            }
        }
    }

    /// What the step's expressions come to; nothing if its condition is false.
    pub fn render(&self, budget: &Budget) -> Result<Option<Rendered>, StepError> {
        let scope = self.scope(budget)?;
        let spec = &self.plan.steps[self.position as usize];
        match &spec.condition {
            Some(source) if self.has_condition && !holds(source, &scope)? => Ok(None),
            _ => render_step(spec, &scope).map(Some),
        }
    }

    fn scope(&self, budget: &Budget) -> Result<Scope, StepError> {
        let exact = |what: String, json: &Json| {
            json.to_exact_value().map_err(|error| {
                StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", format!("{what} cannot be used: {error}"))
            })
        };
        let mut steps = Map::new();
        for (index, (spec, step)) in self.plan.steps.iter().zip(&self.steps).enumerate() {
            // What a resumed run keeps of a later step is passed over, and is known all the same.
            let is_past = index < self.position as usize;
            let is_kept = index > self.position as usize && step.state().is_finished();
            if !is_past && !is_kept {
                continue;
            }
            let output = match step.result() {
                // Else a worker could name any secret in a step's output and have it sent to itself.
                Some(output) if holds_reference(output) => {
                    let what = format!(
                        "the output of step `{}` holds a reference to a secret, which only files may",
                        spec.key
                    );
                    return Err(StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", what));
                }
                Some(output) => exact(format!("the output of step `{}`", spec.key), output)?,
                None => Value::Null,
            };
            steps.insert(spec.key.clone(), json!({ "output": output, "state": step.state() }));
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

/// Whether a text marks a secret, in any spelling that JSON has for the mark.
fn holds_reference(output: &Json) -> bool {
    let text = output.as_str();
    let suspect = text.contains(SECRET) || text.contains("\\u");
    suspect && output.to_value().is_ok_and(|value| is_marked(&value))
}

fn is_marked(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.contains_key(SECRET) || fields.values().any(is_marked),
        Value::Array(items) => items.iter().any(is_marked),
        _ => false,
    }
}

fn render_step(spec: &StepSpec, scope: &Scope) -> Result<Rendered, StepError> {
    let mut rendered = Rendered::default();
    if let Some(template) = input_template(spec) {
        rendered.input = Some(bound_fields(spec, render(&template, scope)?)?);
    }
    match &spec.work {
        Work::Wait { until: WaitFor::Signal { key: Some(key), .. }, .. } => {
            let key = text(expression::render_text(key, scope)?);
            if key.contains(NUL) {
                let message = "the key of the wait holds a NUL character";
                return Err(StepError::new(ErrorClass::Invalid, "EXPRESSION_FAILED", message));
            }
            rendered.wait_key = Some(key);
        }
        Work::Approval(Gate { message: Some(message), .. }) => {
            rendered.message = Some(text(expression::render_text(message, scope)?));
        }
        Work::Wait { until: WaitFor::Until(template), .. } => {
            rendered.wait_until = Some(instant(&expression::render_text(template, scope)?)?);
        }
        _ => {}
    }
    Ok(rendered)
}

fn holds(condition: &str, scope: &Scope) -> Result<bool, StepError> {
    Ok(expression::condition(condition, scope)? || is_planted(Bug::ConditionIgnored))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(operation: &str) -> StepSpec {
        StepSpec::new("a", Work::Connector { operation: operation.into(), with: Some(Json::trusted("{}")) })
    }

    #[test]
    fn what_a_connector_is_given_is_complete_and_canonical() {
        let given = Json::trusted(r#"{ "text": "x", "channel": "C1" }"#);
        let bound = bound_fields(&spec("slack.post"), given).unwrap();
        assert_eq!(bound.as_str(), r#"{"channel":"C1","connection":"slack","text":"x"}"#);
        let task = StepSpec::task("a", "t");
        let untouched = Json::trusted(r#"{ "any": 1 }"#);
        assert_eq!(bound_fields(&task, untouched.clone()).unwrap(), untouched);
    }

    #[test]
    fn what_it_does_not_take_fails_the_step_before_anybody_is_asked() {
        for (operation, given, says) in [
            ("slack.post", r#"{"channel":"C1"}"#, "`text` is missing"),
            ("slack.post", r#"{"channel":"C1","text":{"$secret":"A"}}"#, "secret cannot stand here"),
            ("pagerduty.event", r#"{"action":"resolve"}"#, "dedup_key"),
            ("jira.issue", "{}", "no connector"),
        ] {
            let error = bound_fields(&spec(operation), Json::trusted(given)).unwrap_err();
            assert_eq!((error.code.as_str(), error.class), ("CONNECTOR_INPUT_INVALID", ErrorClass::Invalid));
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_no_command_fails_the_step_before_it_is_handed_out() {
        let argv = vec!["/usr/bin/id".to_owned(), "${{ inputs.flag }}".to_owned()];
        let spec = StepSpec::new("a", Work::Command { argv, env: std::collections::BTreeMap::new() });
        for (flag, says) in [
            ("[]", "came to a list"),
            ("null", "came to nothing"),
            (r#"{"$secret":"A"}"#, "is a secret"),
            (r#""\u0000""#, "a zero byte"),
        ] {
            let rendered = format!(r#"{{"argv":["/usr/bin/id",{flag}],"env":{{}}}}"#);
            let error = bound_fields(&spec, Json::trusted(rendered)).unwrap_err();
            assert_eq!((error.code.as_str(), error.class), ("COMMAND_INVALID", ErrorClass::Invalid), "{flag}");
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn an_answer_that_names_a_secret_is_recognised_in_every_spelling() {
        for text in
            [r#"{"$secret":"A"}"#, r#"[{"a":{"$secret":"A"}}]"#, r#"{"\u0024secret":"A"}"#, r#"{"$\u0073ecret":1}"#]
        {
            assert!(holds_reference(&Json::trusted(text)), "{text}");
        }
        for text in [r#""$secret""#, r#"{"a":"$secret \u0041"}"#, "null"] {
            assert!(!holds_reference(&Json::trusted(text)), "{text}");
        }
    }
}
