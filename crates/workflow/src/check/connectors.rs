//! Steps that call another system: the connector exists, its fields are what it takes, and what is undone can be.

use interlock_connectors::schema::{FaultKind, faults, settled};
use interlock_connectors::{Connector, FieldFault, Filling, MODEL_CHAT, Reversal, bound, find, names};
use interlock_core::state::StepKind;
use interlock_core::text::nearest::hint;
use serde_json::{Value as Json, json};

use crate::convert::{class_of_connector, model_fields};
use crate::definition::{Definition, Rollback, Step};
use crate::diagnostic::{Code, Report};
use crate::node::{Node, Span, Value};
use crate::shape::{At, Name};

pub fn check(definition: &Definition, report: &mut Report) {
    for step in definition.steps.iter() {
        match step.kind() {
            Some(StepKind::Connector) => operation(step, report),
            Some(StepKind::Model) => model(step, report),
            _ => {}
        }
        if let Some(rollback) = &step.rollback {
            undoing(step, rollback, report);
        }
    }
}

fn known(uses: &At<Name>, report: &mut Report) -> Option<&'static dyn Connector> {
    if &***uses == MODEL_CHAT {
        // Rules and caps know a model call by the kind of its step.
        let message = format!("`{MODEL_CHAT}` is not for `uses`: a step asks a model by `model`");
        report
            .error(Code::InvalidValue, uses.span, message)
            .help("write `model: NAME` and `with: { prompt: … }`; a rollback cannot ask a model");
        return None;
    }
    let found = find(uses);
    if found.is_none() {
        let message = format!("there is no connector `{}`", &***uses);
        report.error(Code::UnknownConnector, uses.span, message).help(hint(uses, names()));
    }
    found
}

fn operation(step: &Step, report: &mut Report) {
    let Some(uses) = &step.uses else { return };
    let Some(connector) = known(uses, report) else { return };
    let with = step.with.as_ref().map(|with| &with.0);
    let given = with.map_or_else(|| json!({}), Node::to_json);
    fields(connector, &given, (with, uses.span), report);
    effect(step, connector, report);
}

fn model(step: &Step, report: &mut Report) {
    let (Some(model), Some(connector)) = (&step.model, find(MODEL_CHAT)) else { return };
    let with = step.with.as_ref().map(|with| &with.0);
    let Some(Value::Map(given)) = with.map(|with| &with.value) else {
        let span = with.map_or(model.span, |with| with.span);
        report
            .error(Code::MissingField, span, "a model step needs a `with` that says what is asked")
            .help("write `with: { prompt: … }`; the whole of it cannot be one expression");
        return;
    };
    if let Some((key, _)) = given.iter().find(|(key, _)| key.name == "model") {
        report
            .error(Code::MisplacedField, key.span, "the model is named by the step's `model`")
            .help("leave it out here");
        return;
    }
    fields(connector, &model_fields(model, with), (with, model.span), report);
    effect(step, connector, report);
}

/// Holds what is written against what the connector takes.
fn fields(connector: &dyn Connector, given: &Json, (with, at): (Option<&Node>, Span), report: &mut Report) {
    let name = connector.declaration().operation;
    let found = faults(connector.declaration().fields, given, Filling::Written);
    for fault in &found {
        let FieldFault { path, kind, what, help } = fault;
        let span = with.map_or(at, |with| place(with, path, *kind == FaultKind::Unknown));
        let code = match kind {
            FaultKind::Unknown => Code::UnknownField,
            FaultKind::Missing => Code::MissingField,
            FaultKind::Value => Code::InvalidValue,
        };
        let diagnostic = report.error(code, span, format!("`{name}`: {what}"));
        diagnostic.help.clone_from(help);
    }
    // What no single field can say is known only where nothing is left to be evaluated; else it is checked when the step
    // begins.
    if found.is_empty()
        && let Some(settled) = settled(given)
        && let Err(what) = bound(connector, settled)
    {
        report.error(Code::InvalidValue, with.map_or(at, |with| with.span), format!("`{name}`: {what}"));
    }
}

/// Where a field stands, or what it should stand in.
fn place(node: &Node, path: &[String], at_name: bool) -> Span {
    let Some((first, rest)) = path.split_first() else { return node.span };
    match &node.value {
        Value::Map(fields) => match fields.iter().find(|(key, _)| key.name == *first) {
            Some((key, _)) if rest.is_empty() && at_name => key.span,
            Some((_, inner)) => place(inner, rest, at_name),
            None => node.span,
        },
        Value::List(items) => {
            let item = first.parse::<usize>().ok().and_then(|at| items.get(at));
            item.map_or(node.span, |inner| place(inner, rest, at_name))
        }
        _ => node.span,
    }
}

/// What a step declares can only be stricter than what its connector knows.
fn effect(step: &Step, connector: &dyn Connector, report: &mut Report) {
    let (Some(declared), Some(class)) = (step.effect, class_of_connector(step)) else { return };
    if declared.value < class {
        let name = connector.declaration().operation;
        let message = format!("`effect: {}` has no effect: `{name}` is `{class}` with these fields", declared.value);
        report.warning(Code::Ineffective, declared.span, message).help("a declaration can only be stricter");
    }
}

fn undoing(step: &Step, rollback: &Rollback, report: &mut Report) {
    let Some(uses) = &rollback.uses else { return };
    let Some(connector) = known(uses, report) else { return };
    if let Some(with) = &rollback.with {
        fields(connector, &with.0.to_json(), (Some(&with.0), uses.span), report);
        return;
    }
    if step.uses.as_ref().is_none_or(|own| own.value != uses.value) {
        report
            .error(Code::MissingField, uses.span, format!("`{}` needs a `with` to undo this step", &***uses))
            .help("without `with`, a rollback by the step's own connector is its exact inverse");
    } else if !matches!(connector.declaration().reversal, Reversal::Inverse { .. }) {
        let why = match connector.declaration().reversal {
            Reversal::Irreversible(why) => why,
            _ => "it changes nothing",
        };
        report.error(Code::InvalidValue, uses.span, format!("`{}` cannot be undone: {why}", &***uses));
    }
}
