//! What is wrong with an expression, in Interlock's own words: what CEL's parser and interpreter say is written for
//! their developers.

use cel::{ExecutionError, Value};

/// How the parser calls the end of the text.
const END: &str = "<EOF>";

/// What the parser has found wrong.
pub(super) fn syntax(said: &str) -> String {
    let said = said.strip_prefix("Syntax error: ").unwrap_or(said);
    if let Some(found) = said.strip_prefix("token recognition error at: ") {
        return unknown(unquoted(found));
    }
    if let Some((wanted, found)) = said.strip_prefix("missing ").and_then(|rest| rest.split_once(" at ")) {
        let (wanted, found) = (unquoted(wanted), unquoted(found));
        return match found {
            END => format!("`{wanted}` is missing at the end"),
            _ => format!("`{wanted}` is missing before `{found}`"),
        };
    }
    for prefix in ["mismatched input ", "extraneous input ", "no viable alternative at input "] {
        let Some(rest) = said.strip_prefix(prefix) else { continue };
        let (found, expected) = rest.split_once(" expecting ").unwrap_or((rest, ""));
        return match unquoted(found) {
            END => "the expression ends too early: a value or a closing bracket is missing".to_owned(),
            found if expected == END => format!("the expression is over before `{found}`"),
            found => format!("`{found}` cannot stand here"),
        };
    }
    if let Some(name) = said.strip_prefix("reserved identifier: ") {
        return format!("`{name}` is a reserved word and names nothing");
    }
    if said.contains("literal") {
        return "this number or text cannot be read: whole numbers have 64 bits, and escapes in a text are `\\n`, `\\t`, `\\\\`, `\\'` and `\\u00e9`"
            .to_owned();
    }
    match said {
        "argument must be a simple name" => "the first argument of a loop is a plain name, as in `list.map(x, x + 1)`",
        "invalid argument to has() macro" => "`has` takes a field, as in `has(inputs.ticket)`",
        _ if said.starts_with("Recursion limit") => "it is nested too deeply",
        _ if said.starts_with("unsupported syntax") => "optional fields (`?`) are not supported; ask with `has(…)`",
        _ => "it cannot be read as an expression",
    }
    .to_owned()
}

/// Characters that begin nothing, with what was probably meant.
fn unknown(found: &str) -> String {
    match found.chars().next() {
        Some('"' | '\'') => "the text that begins here has no closing quote".to_owned(),
        Some('=') => "`=` means nothing here; two values are compared with `==`".to_owned(),
        Some('&') => "`&` means nothing here; both conditions hold with `&&`".to_owned(),
        Some('|') => "`|` means nothing here; one of two conditions holds with `||`".to_owned(),
        _ => format!("`{}` has no meaning in an expression", found.trim()),
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(text)
}

/// What an error is about, as it is written in the expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Culprit<'a> {
    Name(&'a str),
    Operator(&'a str),
}

impl<'a> Culprit<'a> {
    /// An operator by what the interpreter calls it, or a function.
    fn called(name: &'a str) -> Self {
        let operator = match name.trim_matches('_') {
            "add" | "+" => "+",
            "sub" | "-" => "-",
            "mul" | "*" => "*",
            "div" | "/" => "/",
            "rem" | "%" => "%",
            "[_]" => "[",
            "@in" => "in",
            "?_:" => "?",
            "!" => "!",
            "&&" => "&&",
            "||" => "||",
            "==" => "==",
            "!=" => "!=",
            "<" => "<",
            "<=" => "<=",
            ">" => ">",
            ">=" => ">=",
            _ => return Self::Name(name),
        };
        Self::Operator(operator)
    }

    /// As people write it.
    fn written(self) -> &'a str {
        match self {
            Self::Operator("[") => "[…]",
            Self::Operator("?") => "… ? … : …",
            Self::Operator(text) | Self::Name(text) => text,
        }
    }

    /// Where it stands. Of an operator that stands there several times, each place that it may be.
    pub fn place_in(self, source: &str) -> Option<String> {
        match self {
            Self::Name(name) => place_of(name, source),
            Self::Operator(operator) => {
                let found = operators(operator, source);
                let few = (1..=PLACES_MAX).contains(&found.len());
                few.then(|| found.iter().map(|at| place_at(source, *at)).collect::<Vec<_>>().join(" or "))
            }
        }
    }
}

/// More places than these help nobody.
const PLACES_MAX: usize = 3;

/// Why there is no value, and the name or the operator in the expression that it is about, where there is one.
pub(super) fn execution<'e>(error: &'e ExecutionError) -> (String, Option<Culprit<'e>>) {
    use ExecutionError as E;
    let named = |name: &'e str| Some(Culprit::Name(name));
    match error {
        E::NoSuchKey(name) => (format!("there is no field `{name}` in this value"), named(name)),
        E::UndeclaredReference(name) => (format!("there is nothing of the name `{name}`"), named(name)),
        E::NotSupportedAsMethod { method, target } => (format!("{} has no `{method}`", kind(target)), named(method)),
        E::FunctionError { function, message } => match converted(function) {
            Some(wanted) => (format!("`{function}` cannot read this value as {wanted}"), named(function)),
            // Those are our own functions, which say it in our words.
            None => (message.clone(), named(function)),
        },
        // A field of what is no map.
        E::NoSuchOverload(call) if call.function() == "_._" => {
            let what = call.argument_types().first().map_or("this value", |name| type_in_words(name));
            (format!("{what} has no fields"), Some(Culprit::Operator(".")))
        }
        E::NoSuchOverload(call) => {
            let culprit = Culprit::called(call.function());
            let types: Vec<&str> = call.argument_types().iter().map(|name| type_in_words(name)).collect();
            (format!("`{}` cannot be applied to {}", culprit.written(), types.join(" and ")), Some(culprit))
        }
        E::UnsupportedBinaryOperator(operator, one, other) => {
            let culprit = Culprit::called(operator);
            let what = format!("`{}` cannot be applied to {} and {}", culprit.written(), kind(one), kind(other));
            (what, Some(culprit))
        }
        E::Overflow(operator, ..) => {
            let culprit = Culprit::called(operator);
            let what = format!("the result of `{}` is larger than a whole number can be", culprit.written());
            (what, Some(culprit))
        }
        E::DivisionByZero(_) => ("a number is divided by zero".to_owned(), Some(Culprit::Operator("/"))),
        E::RemainderByZero(_) => ("a number is divided by zero".to_owned(), Some(Culprit::Operator("%"))),
        E::IndexOutOfBounds(_) => ("the list has no item at this place".to_owned(), Some(Culprit::Operator("["))),
        E::UnsupportedIndex(index, value) => {
            (format!("{} is no place in {}", kind(index), kind(value)), Some(Culprit::Operator("[")))
        }
        other => (plain(other), None),
    }
}

/// What a function of CEL's own turns a value into.
fn converted(function: &str) -> Option<&'static str> {
    Some(match function {
        "int" | "uint" => "a whole number, such as `7`",
        "double" => "a number, such as `7.5`",
        "bool" => "`true` or `false`",
        "string" => "a text",
        "bytes" => "bytes",
        "timestamp" => "an instant, such as `2026-01-31T12:00:00Z`",
        "duration" => "a span of time, such as `90s`",
        _ => return None,
    })
}

fn plain(error: &ExecutionError) -> String {
    use ExecutionError as E;
    match error {
        E::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments and was given {actual}")
        }
        E::UnsupportedTargetType { target } => format!("{} cannot be used so", kind(target)),
        E::UnsupportedKeyType(value) => format!("{} cannot be the key of a map", kind(value)),
        E::UnexpectedType { got, want } => {
            format!("here is {}, and {} is needed", type_in_words(got), type_in_words(want))
        }
        E::MissingArgumentOrTarget => "a function has nothing to work on".to_owned(),
        E::ValuesNotComparable(one, other) => format!("{} and {} cannot be compared", kind(one), kind(other)),
        E::DuplicateKey(_) => "a map names the same key twice".to_owned(),
        _ => "it cannot be computed".to_owned(),
    }
}

/// What the interpreter calls a type, as people call it.
fn type_in_words(name: &str) -> &str {
    match name {
        "null_type" => "null",
        "bool" => "true or false",
        "int" | "uint" => "a whole number",
        "double" => "a number",
        "string" => "a text",
        "list" => "a list",
        "map" => "a map",
        "google.protobuf.Timestamp" | "timestamp" => "an instant",
        "google.protobuf.Duration" | "duration" => "a span of time",
        other => other,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "a number",
        Value::String(_) => "a text",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
        _ => "this value",
    }
}

/// Where an error is, as people count.
pub(super) fn place(line: usize, column: usize) -> String {
    if line > 1 { format!("line {line}, column {column}") } else { format!("column {column}") }
}

/// Where a name stands in an expression: the first place that is this word and no part of another.
fn place_of(name: &str, source: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let found = source.match_indices(name).map(|(at, _)| at).find(|at| {
        let after = source[at + name.len()..].chars().next();
        !source[..*at].chars().next_back().is_some_and(is_word) && !after.is_some_and(is_word)
    })?;
    Some(place_at(source, found))
}

fn place_at(source: &str, at: usize) -> String {
    let before = &source[..at];
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    place(before.matches('\n').count() + 1, column)
}

/// Where an operator stands, texts aside.
fn operators(operator: &str, source: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let (mut quote, mut escaped, mut before) = (None, false, None);
    for (at, c) in source.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => {
                if let Some(rest) = source[at..].strip_prefix(operator) {
                    let after = rest.chars().next();
                    // `<` is no `<=`, and the `in` of `index` none of a list.
                    let is_whole = match operator {
                        "in" => !before.is_some_and(is_word) && !after.is_some_and(is_word),
                        "<" | ">" | "!" => after != Some('='),
                        _ => true,
                    };
                    if is_whole {
                        found.push(at);
                    }
                }
            }
        }
        before = Some(c);
    }
    found
}
