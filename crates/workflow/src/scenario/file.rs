//! The shape of a scenario file.

use interlock_core::plan::retry::ErrorClass;
use interlock_core::state::{Reason, RunState, StepKind, StepState};
use interlock_core::time::Millis;

use crate::Checked;
use crate::definition::Step;
use crate::diagnostic::{Code, Report};
use crate::node::{Node, Span, Value};
use crate::shape::{At, Defs, Map, Name, OneOrMany, Shape, Template, record, words};
use interlock_core::text::article::with_article;
use interlock_core::text::nearest::hint;

words!(ErrorClass, Reason, RunState, StepState);

record! {
    /// Scenarios of one workflow.
    "a scenario file" ScenarioFile {
        /// The workflow's file, seen from this one.
        workflow: At<String>,
        /// What is tried.
        scenarios: At<Vec<Scenario>>,
    }
}

record! {
    /// One run on paper.
    "a scenario" Scenario {
        /// What it shows, in a few words.
        name: At<String>,
        /// What the run is given.
        inputs: Option<Template>,
        /// The subject, instead of the workflow's own.
        subject: Option<String>,
        /// Who starts it, and so may not approve it.
        started_by: Option<String>,
        /// What each step answers, by its id (`rollback:ID` for what undoes it, `verify:ID` for what verifies that): one answer, or a list with one for
        /// each attempt, whose last one repeats.
        steps: Map<OneOrMany<Stub>>,
        /// Signals that come.
        signals: Vec<SignalAt>,
        /// Votes that people give.
        votes: Vec<VoteAt>,
        /// What an operator does.
        operator: Vec<Directive>,
        /// What must come of it.
        expect: Expect,
    }
}

record! {
    /// What a step answers: an output or an error, after a while.
    "a step's answer" Stub {
        /// The output; `null` where neither it nor an error is given.
        output: Option<Template>,
        /// The error.
        error: Option<StubError>,
        /// How long it takes; nothing where omitted.
        takes: Option<Millis>,
    }
}

record! {
    /// Why an attempt fails.
    "an error" StubError {
        /// Whether it is worth another try; `unclassified` (it is) where omitted.
        class: Option<ErrorClass>,
        /// The code for programs.
        code: Option<String>,
        /// The words for people.
        message: Option<String>,
    }
}

record! {
    /// A signal that comes.
    "a signal" SignalAt {
        /// How long after the start.
        at: Millis,
        /// Its type.
        kind ("type"): At<Name>,
        /// Its key; the run's subject, else its id, where omitted.
        key: Option<String>,
        /// What it carries.
        payload: Option<Template>,
    }
}

record! {
    /// A vote that a person gives on the gate that is open then.
    "a vote" VoteAt {
        /// How long after the start.
        at: Millis,
        /// Who votes.
        person: String,
        /// The groups that the person is in.
        groups: Vec<String>,
        /// The vote.
        approve: bool,
        /// What the person says to it.
        notes: Option<String>,
    }
}

record! {
    /// Something that an operator does: exactly one of these.
    "a directive" Directive {
        /// How long after the start.
        at: Millis,
        /// Pause the run, for this reason.
        pause: Option<String>,
        /// Resume it.
        resume: Option<bool>,
        /// Retry the step it stands at.
        retry: Option<bool>,
        /// Skip the step it stands at, for this reason.
        skip: Option<String>,
        /// Roll back, for this reason.
        rollback: Option<String>,
        /// Cancel, for this reason.
        cancel: Option<String>,
        /// Who does it: past an approval that was not given, a `skip` is the vote of this person.
        person: Option<String>,
        /// The groups that the person is in.
        groups: Vec<String>,
    }
}

record! {
    /// What must come of a scenario. What is not said is not checked.
    "`expect`" Expect {
        /// The state at the end, or where nothing more happens.
        state: Option<At<RunState>>,
        /// Why it ended or stopped.
        reason: Option<At<Reason>>,
        /// The steps that were reached and not skipped, in order; those that undo others at the end.
        path: Option<At<Vec<At<Name>>>>,
        /// The steps that were skipped, in order.
        skipped: Option<At<Vec<At<Name>>>>,
        /// Single steps: a state, or more about it.
        steps: Map<StepExpect>,
        /// The run's output.
        output: Option<Template>,
        /// How long it took.
        lasts: Option<At<Millis>>,
        /// The start is refused with words that hold these.
        refused: Option<At<String>>,
    }
}

record! {
    /// What must have come of a step.
    "a step's expectation" StepRecord {
        /// Its state.
        state: Option<At<StepState>>,
        /// What it was given.
        input: Option<Template>,
        /// What it answered.
        output: Option<Template>,
        /// How many attempts there were.
        attempts: Option<At<u32>>,
        /// The code of its last error.
        error: Option<At<String>>,
    }
}

/// What must have come of a step, which may be written as nothing but its state.
#[derive(Debug, Clone)]
pub struct StepExpect(pub StepRecord);

impl Shape for StepExpect {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::Text(_) = node.value else { return StepRecord::read(node, report).map(Self) };
        let state = Some(At::read(node, report)?);
        Some(Self(StepRecord { span: node.span, state, input: None, output: None, attempts: None, error: None }))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        serde_json::json!({ "oneOf": [StepState::schema(defs), StepRecord::schema(defs)] })
    }
}

/// Reports names that the workflow does not have, and answers to steps that do not ask.
pub fn check(workflow: &Checked, scenario: &Scenario, report: &mut Report) {
    let ids: Vec<&str> = workflow.definition.steps.iter().map(|step| &*step.id.value).collect();
    let rollback = |name: &str| {
        let undone = name.strip_prefix("rollback:").or_else(|| name.strip_prefix("verify:"));
        undone.is_some_and(|name| ids.contains(&name))
    };
    let mut named: Vec<(&str, Span)> = Vec::new();
    named.extend(scenario.steps.0.iter().map(|(key, _)| (key.name.as_str(), key.span)));
    named.extend(scenario.expect.steps.0.iter().map(|(key, _)| (key.name.as_str(), key.span)));
    for list in [&scenario.expect.path, &scenario.expect.skipped].into_iter().flatten() {
        named.extend(list.iter().map(|name| (&*name.value, name.span)));
    }
    for (name, span) in named {
        if !ids.contains(&name) && !rollback(name) {
            report
                .error(Code::UnknownStep, span, format!("there is no step `{name}`"))
                .help(hint(name, ids.iter().copied()));
        }
    }
    for (key, stubs) in &scenario.steps.0 {
        let kind = workflow.definition.steps.iter().find(|step| *step.id.value == *key.name).and_then(Step::kind);
        if let Some(kind @ (StepKind::Transform | StepKind::Wait | StepKind::Approval)) = kind {
            let message = format!("{} step needs no answer: it is carried out as it is", with_article(kind.as_str()));
            report.error(Code::MisplacedField, key.span, message);
        }
        if stubs.0.is_empty() {
            report.error(Code::MissingField, key.span, format!("`{}` has no answers", key.name));
        }
        for stub in stubs.0.iter().filter(|stub| stub.output.is_some() && stub.error.is_some()) {
            report.error(Code::InvalidValue, stub.span, "an answer is an `output` or an `error`, not both");
        }
    }
    for directive in &scenario.operator {
        let given = [
            directive.pause.is_some(),
            directive.resume.is_some(),
            directive.retry.is_some(),
            directive.skip.is_some(),
            directive.rollback.is_some(),
            directive.cancel.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            let message = "a directive is exactly one of `pause`, `resume`, `retry`, `skip`, `rollback`, `cancel`";
            report.error(Code::InvalidValue, directive.span, message);
        }
    }
}
