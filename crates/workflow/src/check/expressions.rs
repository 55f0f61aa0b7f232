//! Every expression of a definition, with what it may refer to where it stands.

use crate::definition::{Definition, InputType, Step};
use crate::diagnostic::{Code, Report};
use crate::expression::budget::Budget;
use crate::expression::pieces::{self, OPEN, Piece};
use crate::expression::reference::{EVENT_TRIGGER_FIELDS, Fault, NamesInScope, SCHEDULE_TRIGGER_FIELDS, faults};
use crate::node::{Node, Span};
use crate::shape::{Expression, TextTemplate};
use crate::source::Source;

pub fn check(definition: &Definition, source: &Source, budget: &Budget, report: &mut Report) {
    let inputs: Vec<(&str, Option<InputType>)> = definition
        .inputs
        .0
        .iter()
        .map(|(key, input)| (key.name.as_str(), input.kind.filter(|_| !input.is_secret())))
        .collect();
    let mut checker = Checker { source, report, budget, spent: false };

    let at_start = NamesInScope { inputs: Some(&inputs), ..NamesInScope::default() };
    if let Some(subject) = &definition.subject {
        checker.text(&subject.key, &at_start);
    }
    for (_, label) in &definition.labels.0 {
        checker.text(label, &at_start);
    }
    triggers(definition, &mut checker);

    let ids: Vec<&str> = definition.steps.iter().map(|step| &**step.id).collect();
    for (index, step) in definition.steps.iter().enumerate() {
        let (before, later) = ids.split_at(index);
        let known =
            NamesInScope { inputs: Some(&inputs), steps: Some(before), later, run: true, ..NamesInScope::default() };
        self::step(step, &known, &mut checker);
        if let Some(rollback) = &step.rollback {
            if let Some(with) = &rollback.with {
                checker.fixed(&with.0);
            }
            // What undoes a step sees what it did.
            let undoing = NamesInScope { steps: Some(&ids[..=index]), later: &ids[index + 1..], ..known };
            let verify = rollback.verify.as_ref().and_then(|verify| verify.run.as_ref());
            for item in rollback.run.iter().chain(verify).flat_map(|run| &run.items) {
                checker.text(item, &undoing);
            }
        }
    }
}

fn triggers(definition: &Definition, checker: &mut Checker<'_>) {
    let Some(on) = &definition.on else { return };
    let known = NamesInScope { free: &["event"], trigger: EVENT_TRIGGER_FIELDS, ..NamesInScope::default() };
    let filters = (on.webhook.0.iter().map(|trigger| (&trigger.filter, &trigger.inputs)))
        .chain(on.github.0.iter().map(|trigger| (&trigger.filter, &trigger.inputs)))
        .chain(on.slack.0.iter().map(|trigger| (&trigger.filter, &trigger.inputs)))
        .chain(on.servicenow.0.iter().map(|trigger| (&trigger.filter, &trigger.inputs)))
        .chain(on.ticket.0.iter().map(|trigger| (&trigger.filter, &trigger.inputs)))
        .chain(on.signal.0.iter().map(|trigger| (&trigger.filter, &trigger.inputs)));
    for (filter, inputs) in filters {
        if let Some(filter) = filter {
            checker.condition(filter, &known);
        }
        for (key, template) in &inputs.0 {
            let secrets = definition.inputs.get(&key.name).is_some_and(crate::definition::Input::is_secret);
            checker.tree(&template.0, &NamesInScope { secrets, ..known });
        }
    }
    let known = NamesInScope { trigger: SCHEDULE_TRIGGER_FIELDS, ..NamesInScope::default() };
    for (key, template) in on.schedule.0.iter().flat_map(|trigger| &trigger.inputs.0) {
        let secrets = definition.inputs.get(&key.name).is_some_and(crate::definition::Input::is_secret);
        checker.tree(&template.0, &NamesInScope { secrets, ..known });
    }
}

fn step(step: &Step, known: &NamesInScope<'_>, checker: &mut Checker<'_>) {
    if let Some(condition) = &step.condition {
        checker.condition(condition, known);
    }
    if let Some(with) = &step.with {
        checker.tree(&with.0, &NamesInScope { secrets: true, ..*known });
    }
    if let Some(value) = &step.transform {
        checker.tree(&value.0, known);
    }
    let texts = (step.run.iter().flat_map(|run| &run.items))
        .chain(step.wait.iter().flat_map(|wait| wait.key.iter().chain(&wait.until)))
        .chain(step.approval.iter().flat_map(|gate| &gate.0.message))
        .chain(step.idempotency.iter().flat_map(|rule| &rule.key));
    for text in texts {
        checker.text(text, known);
    }
    for (_, text) in &step.env.0 {
        checker.text(text, &NamesInScope { secrets: true, ..*known });
    }
}

struct Checker<'a> {
    source: &'a Source,
    report: &'a mut Report,
    budget: &'a Budget,
    /// The budget is spent, and that was said.
    spent: bool,
}

impl Checker<'_> {
    fn tree(&mut self, node: &Node, known: &NamesInScope<'_>) {
        node.texts(&mut |text, span| self.pieces(text, span, known));
    }

    /// A rollback is triggered by whatever goes wrong, and nothing is evaluated then: it must not fail on an expression.
    fn fixed(&mut self, node: &Node) {
        node.texts(&mut |text, span| {
            if crate::expression::is_dynamic(text) {
                self.report
                    .error(Code::FixedValue, span, "the `with` of a rollback holds fixed values only")
                    .help("the rollback's task is given the undone step's `input` and `output`: take it from there");
            }
        });
    }

    fn text(&mut self, text: &TextTemplate, known: &NamesInScope<'_>) {
        self.pieces(&text.0, text.0.span, known);
    }

    fn condition(&mut self, condition: &Expression, known: &NamesInScope<'_>) {
        let (text, span) = (condition.0.value.as_str(), condition.0.span);
        match pieces::split(text.trim()) {
            Ok(pieces) => match pieces.as_slice() {
                [Piece::Expression { source, .. }] => {
                    let at = self.source.slice(span).find(OPEN).map(|at| at + OPEN.len());
                    self.one(source, (known, true), span, at);
                }
                pieces if pieces.iter().any(|piece| matches!(piece, Piece::Expression { .. })) => {
                    self.report
                        .error(Code::ExpressionSyntax, span, "a condition is one expression, not a text with parts")
                        .help("write the whole condition inside one `${{ … }}`, or without the braces");
                }
                _ => {
                    // Written without braces: the text itself is the expression.
                    let at = self.source.slice(span).find(text.trim()).unwrap_or(0);
                    self.one(text.trim(), (known, true), span, Some(at));
                }
            },
            Err(_) => self.unclosed(span),
        }
    }

    fn pieces(&mut self, text: &str, span: Span, known: &NamesInScope<'_>) {
        let Ok(pieces) = pieces::split(text) else {
            self.unclosed(span);
            return;
        };
        // A secret stands alone or not at all.
        let alone = pieces.len() == 1;
        let known = NamesInScope { secrets: known.secrets && alone, ..*known };
        let sources = pieces.iter().filter_map(|piece| match piece {
            Piece::Expression { source, .. } => Some(*source),
            Piece::Text(_) => None,
        });
        // The braces look the same in every style of YAML, so those in the file are those in the text, in order.
        let file = self.source;
        let mut places = file.slice(span).match_indices(OPEN).map(|(at, _)| at + OPEN.len());
        for source in sources {
            self.one(source, (&known, false), span, places.next());
        }
    }

    /// One expression, whose text begins at `at` within the span.
    fn one(&mut self, source: &str, (known, condition): (&NamesInScope<'_>, bool), span: Span, at: Option<usize>) {
        if self.spent {
            return;
        }
        if let Err(spent) = self.budget.open(source) {
            self.spent = true;
            self.report.error(Code::ExpressionTooLarge, span, format!("from here on nothing was checked: {spent}"));
            return;
        }
        self.put(faults(source, known, condition), span, at, source);
    }

    fn unclosed(&mut self, span: Span) {
        let at = self.source.slice(span).find(OPEN).unwrap_or(0);
        let span = self.source.within(span, at, at + OPEN.len());
        self.report.error(Code::ExpressionSyntax, span, "`${{` without `}}`").help("close the expression");
    }

    fn put(&mut self, faults: Vec<Fault>, span: Span, at: Option<usize>, source: &str) {
        // Folding and escapes may have changed the text; then the whole value is what can be pointed at.
        let at = at.filter(|at| self.source.slice(span).get(*at..).is_some_and(|rest| rest.starts_with(source)));
        for fault in faults {
            let place = at.map_or(span, |at| self.source.within(span, at + fault.range.start, at + fault.range.end));
            let diagnostic = self.report.error(fault.code, place, fault.message);
            diagnostic.help = fault.help;
        }
    }
}
