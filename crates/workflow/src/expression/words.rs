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

/// Why there is no value, and the name in the expression that it is about, where there is one.
pub(super) fn execution(error: &ExecutionError) -> (String, Option<&str>) {
    use ExecutionError as E;
    match error {
        E::NoSuchKey(name) => (format!("there is no field `{name}` in this value"), Some(name)),
        E::UndeclaredReference(name) => (format!("there is nothing of the name `{name}`"), Some(name)),
        E::NotSupportedAsMethod { method, target } => (format!("{} has no `{method}`", kind(target)), Some(method)),
        other => (plain(other), None),
    }
}

fn plain(error: &ExecutionError) -> String {
    use ExecutionError as E;
    match error {
        E::FunctionError { message, .. } => message.clone(),
        E::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments and was given {actual}")
        }
        E::UnsupportedTargetType { target } => format!("{} cannot be used so", kind(target)),
        E::UnsupportedKeyType(value) => format!("{} cannot be the key of a map", kind(value)),
        E::UnexpectedType { got, want } => format!("a value is of type {got}, where {want} is needed"),
        E::NoSuchOverload(call) => {
            let types = call.argument_types().join(" and ");
            format!("`{}` cannot be applied to {types}", call.function().trim_matches('_'))
        }
        E::MissingArgumentOrTarget => "a function has nothing to work on".to_owned(),
        E::ValuesNotComparable(one, other) => format!("{} and {} cannot be compared", kind(one), kind(other)),
        E::UnsupportedBinaryOperator(operator, one, other) => {
            format!("`{operator}` cannot be applied to {} and {}", kind(one), kind(other))
        }
        E::UnsupportedIndex(index, value) => format!("{} is no place in {}", kind(index), kind(value)),
        E::DivisionByZero(_) | E::RemainderByZero(_) => "a number is divided by zero".to_owned(),
        E::Overflow(operator, ..) => format!("the result of `{operator}` is larger than a whole number can be"),
        E::IndexOutOfBounds(_) => "the list has no item at this place".to_owned(),
        E::DuplicateKey(_) => "a map names the same key twice".to_owned(),
        _ => "it cannot be computed".to_owned(),
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
pub(super) fn place_of(name: &str, source: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let found = source.match_indices(name).map(|(at, _)| at).find(|at| {
        let after = source[at + name.len()..].chars().next();
        !source[..*at].chars().next_back().is_some_and(is_word) && !after.is_some_and(is_word)
    })?;
    let before = &source[..found];
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Some(place(before.matches('\n').count() + 1, column))
}
