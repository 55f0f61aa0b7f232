//! What came, held against what was expected.

use interlock_core::json::Json;
use interlock_core::state::StepState;
use serde_json::Value;

use super::file::{Scenario, StepRecord};
use super::play::Played;
use crate::diagnostic::{Code, Report};
use crate::duration::show;
use crate::node::Span;
use crate::shape::{At, Name, Template};

pub fn compare(played: &Played, scenario: &Scenario, report: &mut Report) {
    let expect = &scenario.expect;
    for trouble in &played.troubles {
        report.error(Code::Unexpected, scenario.name.span, trouble.clone());
    }
    if !played.troubles.is_empty() {
        return;
    }
    let run = &played.run;
    if let Some(refused) = &expect.refused {
        report.error(Code::Unexpected, refused.span, "the start was not refused");
    }
    if let Some(state) = expect.state.filter(|state| state.value != run.state) {
        let reason = run.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        report.error(Code::Unexpected, state.span, format!("the run is {}{reason}, not {}", run.state, state.value));
    }
    if let Some(reason) = expect.reason.filter(|reason| Some(reason.value) != run.reason) {
        let found = run.reason.map_or_else(|| "none".to_owned(), |reason| reason.to_string());
        report.error(Code::Unexpected, reason.span, format!("the reason is {found}, not {}", reason.value));
    }
    let keys = |wanted: fn(StepState) -> bool| -> Vec<&str> {
        let steps = run.steps.iter().enumerate().filter(|(_, step)| wanted(step.state()));
        steps.map(|(position, _)| run.spec(position as u32).key.as_str()).collect()
    };
    let reached = keys(|state| !matches!(state, StepState::Pending | StepState::Skipped | StepState::Canceled));
    list("path", expect.path.as_ref(), &reached, report);
    list("list of skipped steps", expect.skipped.as_ref(), &keys(|state| state == StepState::Skipped), report);
    for (name, expected) in &expect.steps.0 {
        let position = (0..run.steps.len()).find(|position| run.spec(*position as u32).key == name.name);
        match position {
            Some(position) => step(played, position as u32, &expected.0, report),
            None => drop(report.error(Code::Unexpected, name.span, format!("`{}` was not reached", name.name))),
        }
    }
    if let Some(output) = &expect.output {
        value("the run's output", output, played.output.as_ref(), report);
    }
    if let Some(lasts) = expect.lasts.filter(|lasts| lasts.value != played.after) {
        let message = format!("it took {}, not {}", show(played.after), show(lasts.value));
        report.error(Code::Unexpected, lasts.span, message);
    }
}

fn list(what: &str, expected: Option<&At<Vec<At<Name>>>>, found: &[&str], report: &mut Report) {
    let Some(expected) = expected else { return };
    let names: Vec<&str> = expected.iter().map(|name| &*name.value).collect();
    if names != found {
        // The first name that differs is what to look at.
        let differs = names.iter().zip(found).position(|(expected, found)| expected != found);
        let span: Span = differs.map_or(expected.span, |at| expected.value[at].span);
        let shown = if found.is_empty() { "empty".to_owned() } else { format!("[{}]", found.join(", ")) };
        report.error(Code::Unexpected, span, format!("the {what} is {shown}"));
    }
}

fn step(played: &Played, position: u32, expected: &StepRecord, report: &mut Report) {
    let run = &played.run;
    let (step, key) = (&run.steps[position as usize], &run.spec(position).key);
    if let Some(state) = expected.state.filter(|state| state.value != step.state()) {
        let why = step.last_error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        report.error(Code::Unexpected, state.span, format!("`{key}` is {}{why}, not {}", step.state(), state.value));
    }
    if let Some(input) = &expected.input {
        value(&format!("the input of `{key}`"), input, Some(&run.input(position)), report);
    }
    if let Some(output) = &expected.output {
        value(&format!("the output of `{key}`"), output, step.output.as_ref(), report);
    }
    if let Some(attempts) = expected.attempts.filter(|attempts| attempts.value != step.attempt) {
        let message = format!("`{key}` had {} attempts, not {}", step.attempt, attempts.value);
        report.error(Code::Unexpected, attempts.span, message);
    }
    if let Some(code) = &expected.error {
        let found = step.last_error.as_ref().map_or("none", |error| error.code.as_str());
        if found != code.value {
            report.error(Code::Unexpected, code.span, format!("the error of `{key}` is {found}, not {}", code.value));
        }
    }
}

fn value(what: &str, expected: &Template, found: Option<&Json>, report: &mut Report) {
    let found: Value = found.and_then(|found| found.to_value().ok()).unwrap_or_default();
    if found != expected.to_json() {
        report.error(Code::Unexpected, expected.0.span, format!("{what} is {found}"));
    }
}
