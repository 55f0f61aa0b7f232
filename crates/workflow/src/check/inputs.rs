//! Inputs: that each schema makes sense, and that its own default and choices keep to it.

use crate::definition::{Definition, Input, InputType};
use crate::diagnostic::{Code, Report};
use crate::expression::budget::Budget;
use crate::expression::pattern::InvalidPattern;
use crate::inputs::Rule;
use crate::limits::{INPUT_DEPTH_MAX, INPUTS_MAX, PATTERN_BYTES_MAX};
use crate::node::Span;

pub fn check(definition: &Definition, budget: &Budget, report: &mut Report) {
    if definition.inputs.0.len() > INPUTS_MAX {
        let message = format!("there are {} inputs, the limit is {INPUTS_MAX}", definition.inputs.0.len());
        report.error(Code::TooLarge, definition.name.span, message);
    }
    for (key, input) in &definition.inputs.0 {
        one(&key.name, input, (0, budget), report);
        if input.is_searchable()
            && (input.is_secret() || matches!(input.kind, Some(InputType::Object | InputType::Array)))
        {
            report
                .error(Code::InvalidValue, key.span, format!("`{}` cannot be searchable", key.name))
                .help("texts, numbers and truth values can, unless they are secret");
        }
    }
}

fn one(name: &str, input: &Input, (depth, budget): (usize, &Budget), report: &mut Report) {
    if depth >= INPUT_DEPTH_MAX {
        let message = format!("the schema is nested deeper than {INPUT_DEPTH_MAX} levels");
        report.error(Code::TooLarge, input.span, message);
        return;
    }
    if let Some(pattern) = &input.pattern {
        if pattern.len() > PATTERN_BYTES_MAX {
            report.error(Code::TooLarge, pattern.span, format!("the pattern is longer than {PATTERN_BYTES_MAX} bytes"));
            return;
        }
        if let Err(error) = budget.pattern(pattern) {
            let code = if matches!(error, InvalidPattern::Syntax(_)) { Code::InvalidValue } else { Code::TooLarge };
            report.error(code, pattern.span, error.to_string());
            return;
        }
    }
    fields(name, input, report);
    for (key, property) in input.properties.iter().flat_map(|properties| &properties.0) {
        one(&key.name, property, (depth + 1, budget), report);
    }
    if let Some(items) = &input.items {
        one(name, items, (depth + 1, budget), report);
    }
    let Ok(rule) = Rule::of(input, budget) else { return };
    let choices = input.one_of.iter().flatten().map(|choice| ("choice", choice));
    let default = input.default.iter().map(|default| ("default", default));
    for (what, given) in choices.chain(default) {
        // A choice is held against everything but the choices themselves.
        for fault in rule.check(&given.to_json(), name, budget).1 {
            report.error(Code::InvalidDefault, given.0.span, format!("the {what} of {fault}"));
        }
    }
    if input.is_required() && input.default.is_some() {
        let message = format!("`{name}` has a default, so it is never missing: `required` has no effect");
        report.warning(Code::Ineffective, input.span, message);
    }
}

/// Words that another type has, and bounds that exclude everything.
fn fields(name: &str, input: &Input, report: &mut Report) {
    use InputType::{Array, Integer, Number, Object, String};
    let words: [(&str, Option<Span>, &[InputType]); 7] = [
        ("pattern", input.pattern.as_ref().map(|pattern| pattern.span), &[String]),
        ("min", input.min.map(|min| min.span), &[Integer, Number]),
        ("max", input.max.map(|max| max.span), &[Integer, Number]),
        ("min_length", input.min_length.map(|min| min.span), &[String, Array]),
        ("max_length", input.max_length.map(|max| max.span), &[String, Array]),
        ("items", input.items.as_ref().map(|items| items.span), &[Array]),
        ("properties", input.properties.as_ref().and_then(|all| all.0.first()).map(|(key, _)| key.span), &[Object]),
    ];
    for (word, span, kinds) in words {
        let Some(span) = span.filter(|_| input.kind.is_none_or(|kind| !kinds.contains(&kind))) else { continue };
        let of: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        report
            .error(Code::MisplacedField, span, format!("`{word}` belongs to inputs of type {}", of.join(" and ")))
            .help(format!("say `type:` for `{name}`"));
    }
    if let (Some(min), Some(max)) = (input.min, input.max)
        && min.value > max.value
    {
        report.error(Code::InvalidValue, max.span, format!("`{name}` could have no value: max is below min"));
    }
    if let (Some(min), Some(max)) = (input.min_length, input.max_length)
        && min.value > max.value
    {
        let message = format!("`{name}` could have no value: max_length is below min_length");
        report.error(Code::InvalidValue, max.span, message);
    }
}
