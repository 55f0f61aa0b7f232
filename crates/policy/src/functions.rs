//! The functions that a policy may call. Most are the language's own, and cost no more than their arguments are long. Those
//! that can make much out of little are Interlock's own, with limits. All others are refused when a bundle is loaded:
//! they would reach the network, read the clock, draw random numbers, or cannot be stopped.

use regex::RegexBuilder;
use regorus::Value;

use crate::argument::{Failure, list, text, within};
use crate::budget;
use crate::decision::Undecided;
use crate::format::sprintf;
use crate::limits;

/// Functions of the language that do work in proportion to their arguments.
pub(crate) const PLAIN: &[&str] = &[
    "abs",
    "array.reverse",
    "array.slice",
    "ceil",
    "contains",
    "count",
    "endswith",
    "floor",
    "indexof",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "lower",
    "max",
    "min",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "round",
    "sort",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "substring",
    "sum",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "union",
    "upper",
];

/// A function of Interlock's own: its name, how many arguments it takes, and what it does.
pub(crate) struct Limited {
    pub(crate) name: &'static str,
    pub(crate) arity: usize,
    pub(crate) call: fn(&[Value]) -> Result<Value, Failure>,
}

pub(crate) const LIMITED: &[Limited] = &[
    Limited { name: "array.concat", arity: 2, call: array_concat },
    Limited { name: "concat", arity: 2, call: concat },
    Limited { name: "numbers.range", arity: 2, call: range },
    Limited { name: "regex.match", arity: 2, call: regex_match },
    Limited { name: "replace", arity: 3, call: replace },
    Limited { name: "split", arity: 2, call: split },
    Limited { name: "sprintf", arity: 2, call: sprintf },
];

pub(crate) fn is_allowed(name: &str) -> bool {
    PLAIN.contains(&name) || LIMITED.iter().any(|function| function.name == name)
}

impl Limited {
    /// The function as the evaluator calls it. What goes wrong is noted in the budget, because errors become texts on the
    /// way back.
    pub(crate) fn extension(
        &'static self,
    ) -> impl FnMut(Vec<Value>) -> anyhow::Result<Value> + Clone + Send + Sync + 'static {
        move |arguments| {
            let made = (self.call)(&arguments)
                .and_then(|made| if budget::has_room(size(&made)) { Ok(made) } else { Err(ALL_TOO_MUCH) });
            made.map_err(|failure| {
                let Failure::TooMuch(what) = failure else { return anyhow::anyhow!("the arguments do not fit") };
                budget::note(Undecided::TooMuch { function: self.name, what });
                anyhow::anyhow!(what)
            })
        }
    }
}

const ALL_TOO_MUCH: Failure = Failure::TooMuch("all that it has made together is too much");

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => 64 * items.len(),
        _ => 64,
    }
}

fn concat(arguments: &[Value]) -> Result<Value, Failure> {
    let [between, parts] = arguments else { return Err(Failure::Argument) };
    let (between, parts) = (text(between)?, list(parts)?);
    let mut joined = String::new();
    for (index, part) in parts.iter().enumerate() {
        let part = text(part)?;
        within(joined.len() + between.len() + part.len())?;
        if index > 0 {
            joined.push_str(between);
        }
        joined.push_str(part);
    }
    Ok(joined.into())
}

fn replace(arguments: &[Value]) -> Result<Value, Failure> {
    let [within_text, old, new] = arguments else { return Err(Failure::Argument) };
    let (whole, old, new) = (text(within_text)?, text(old)?, text(new)?);
    within(whole.len())?;
    let found = if old.is_empty() { whole.len() + 1 } else { whole.matches(old).count() };
    within(whole.len() + found.saturating_mul(new.len()))?;
    Ok(whole.replace(old, new).into())
}

fn split(arguments: &[Value]) -> Result<Value, Failure> {
    let [whole, between] = arguments else { return Err(Failure::Argument) };
    let (whole, between) = (text(whole)?, text(between)?);
    let parts: Vec<Value> = if between.is_empty() {
        whole.chars().take(limits::LIST_MAX + 1).map(|c| c.to_string().into()).collect()
    } else {
        whole.split(between).take(limits::LIST_MAX + 1).map(Value::from).collect()
    };
    bounded(parts)
}

fn bounded(items: Vec<Value>) -> Result<Value, Failure> {
    if items.len() > limits::LIST_MAX {
        return Err(Failure::TooMuch("the list would be too long"));
    }
    Ok(items.into())
}

fn array_concat(arguments: &[Value]) -> Result<Value, Failure> {
    let [Value::Array(first), Value::Array(second)] = arguments else {
        return Err(Failure::Argument);
    };
    if first.iter().count() + second.iter().count() > limits::LIST_MAX {
        return Err(Failure::TooMuch("the list would be too long"));
    }
    bounded(first.iter().chain(second.iter()).cloned().collect())
}

fn range(arguments: &[Value]) -> Result<Value, Failure> {
    let [from, to] = arguments else { return Err(Failure::Argument) };
    let whole = |value: &Value| value.as_i64().map_err(|_| Failure::Argument);
    let (from, to) = (whole(from)?, whole(to)?);
    if from.abs_diff(to) >= limits::LIST_MAX as u64 {
        return Err(Failure::TooMuch("the range is too long"));
    }
    let up = (from.min(to)..=from.max(to)).map(Value::from);
    bounded(if from <= to { up.collect() } else { up.rev().collect() })
}

fn regex_match(arguments: &[Value]) -> Result<Value, Failure> {
    let [pattern, searched] = arguments else { return Err(Failure::Argument) };
    let (pattern, searched) = (text(pattern)?, text(searched)?);
    if pattern.len() > limits::PATTERN_BYTES_MAX || searched.len() > limits::SEARCHED_BYTES_MAX {
        return Err(Failure::TooMuch("the pattern or the text is too long"));
    }
    let program = RegexBuilder::new(pattern)
        .size_limit(limits::PATTERN_PROGRAM_BYTES_MAX)
        .dfa_size_limit(limits::PATTERN_PROGRAM_BYTES_MAX)
        .build()
        .map_err(|_| Failure::Argument)?;
    Ok(program.is_match(searched).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/reference/policy.md");

    #[test]
    fn the_reference_lists_every_function() {
        let limited = LIMITED.iter().map(|function| function.name);
        for name in PLAIN.iter().copied().chain(limited) {
            assert!(PAGE.contains(&format!("`{name}`")), "{name}");
        }
    }

    fn made(function: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let function = LIMITED.iter().find(|limited| limited.name == function).unwrap();
        assert_eq!(function.arity, arguments.len());
        (function.call)(arguments)
    }

    fn texts(items: &[&str]) -> Value {
        items.iter().map(|item| Value::from(*item)).collect::<Vec<_>>().into()
    }

    #[test]
    fn they_do_what_the_language_says() {
        let of = |function, arguments: &[Value]| made(function, arguments).unwrap();
        assert_eq!(of("concat", &["-".into(), texts(&["a", "b"])]), "a-b".into());
        assert_eq!(of("replace", &["a.b".into(), ".".into(), "/".into()]), "a/b".into());
        assert_eq!(of("split", &["a/b".into(), "/".into()]), texts(&["a", "b"]));
        assert_eq!(of("split", &["ab".into(), "".into()]), texts(&["a", "b"]));
        assert_eq!(of("array.concat", &[texts(&["a"]), texts(&["b"])]), texts(&["a", "b"]));
        assert_eq!(of("numbers.range", &[3.into(), 1.into()]), Value::from(vec![3.into(), 2.into(), 1.into()]));
        assert_eq!(of("regex.match", &["^a+$".into(), "aaa".into()]), true.into());
        let values = Value::from(vec!["x".into(), 7.into(), texts(&["a"]), Value::Null]);
        assert_eq!(of("sprintf", &["%s %d%% %v %v".into(), values]), "x 7% [a] null".into());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (function, arguments) in [
            ("concat", vec!["-".into(), 7.into()]),
            ("sprintf", vec!["%s".into(), texts(&[])]),
            ("sprintf", vec!["x".into(), texts(&["more"])]),
            ("sprintf", vec!["%9d".into(), texts(&["a"])]),
            ("regex.match", vec!["(".into(), "a".into()]),
            ("numbers.range", vec!["a".into(), 1.into()]),
        ] {
            assert!(matches!(made(function, &arguments), Err(Failure::Argument)), "{function}");
        }
    }
}
