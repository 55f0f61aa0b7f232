//! What a run is given, held against what the workflow declares. A [`Rule`] is a schema made ready once; checking is
//! cheap enough for every start.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::definition::{Definition, Input, InputType};
use crate::expression::budget::Budget;
use crate::expression::pattern::{InvalidPattern, Pattern};
use crate::expression::{SECRET, pieces, reference};
use interlock_core::limits::NAME_BYTES_MAX;
use interlock_core::text::nearest::hint;

/// Faults that are named at once; who has made so many begins with these.
const FAULTS_MAX: usize = 50;

/// The inputs of a workflow, ready to check.
#[derive(Debug)]
pub struct Inputs {
    fields: Vec<(String, Field)>,
}

#[derive(Debug)]
struct Field {
    rule: Rule,
    required: bool,
    default: Option<Value>,
    searchable: bool,
}

/// One thing that is wrong with what was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFault {
    /// `inputs.servers[2].name`.
    pub field: String,
    pub what: String,
}

impl fmt::Display for InputFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.what)
    }
}

/// Everything that is wrong with what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct InvalidInputs(pub Vec<InputFault>);

impl Inputs {
    /// Fails only where a pattern cannot be compiled, which the checks of a file have ruled out.
    pub fn of(definition: &Definition, budget: &Budget) -> Result<Self, InvalidPattern> {
        let field = |input: &Input| {
            Ok::<_, InvalidPattern>(Field {
                rule: Rule::of(input, budget)?,
                required: input.is_required(),
                default: input.default.as_ref().map(|default| {
                    let value = default.to_json();
                    if input.is_secret() { as_reference(&value).unwrap_or(value) } else { value }
                }),
                searchable: input.is_searchable(),
            })
        };
        let fields = definition.inputs.0.iter().map(|(key, input)| Ok((key.name.clone(), field(input)?)));
        Ok(Self { fields: fields.collect::<Result<_, InvalidPattern>>()? })
    }

    /// What the run gets: what was given, with defaults, secrets as references.
    pub fn bind(&self, given: &Value, budget: &Budget) -> Result<Value, InvalidInputs> {
        let none = Map::new();
        let given = match given {
            Value::Object(given) => given,
            Value::Null => &none,
            other => {
                let what = format!("is {}, expected an object with a field for each input", kind(other));
                return Err(InvalidInputs(vec![InputFault { field: "inputs".into(), what }]));
            }
        };
        let mut faults = Vec::new();
        for name in given.keys().filter(|name| !self.fields.iter().any(|(known, _)| known == *name)).take(FAULTS_MAX) {
            let known = self.fields.iter().map(|(known, _)| known.as_str());
            let help = if self.fields.is_empty() { "the workflow takes none".to_owned() } else { hint(name, known) };
            faults.push(InputFault { field: format!("inputs.{name}"), what: format!("is not an input; {help}") });
        }
        let mut bound = Map::new();
        for (name, field) in &self.fields {
            match given.get(name).filter(|value| !value.is_null()) {
                Some(value) => {
                    let (value, found) = field.rule.check(value, &format!("inputs.{name}"), budget);
                    faults.extend(found);
                    bound.insert(name.clone(), value);
                }
                None => match &field.default {
                    Some(default) => drop(bound.insert(name.clone(), default.clone())),
                    None if field.required => {
                        faults.push(InputFault { field: format!("inputs.{name}"), what: "is missing".into() });
                    }
                    // Expressions may ask for it all the same.
                    None => drop(bound.insert(name.clone(), Value::Null)),
                },
            }
        }
        let bound = Value::Object(bound);
        for (name, text) in self.searchable(&bound).filter(|(_, text)| text.len() > NAME_BYTES_MAX) {
            let what = format!("is {} bytes long; a searchable input has at most {NAME_BYTES_MAX}", text.len());
            faults.push(InputFault { field: format!("inputs.{name}"), what });
        }
        if faults.is_empty() { Ok(bound) } else { Err(InvalidInputs(faults)) }
    }

    /// What runs can be found by: the searchable inputs as texts.
    pub fn searchable<'a>(&'a self, bound: &'a Value) -> impl Iterator<Item = (&'a str, String)> {
        self.fields.iter().filter(|(_, field)| field.searchable).filter_map(|(name, _)| {
            let text = match bound.get(name)? {
                Value::Null => return None,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((name.as_str(), text))
        })
    }

    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether checking what is given may take a while.
    pub fn have_patterns(&self) -> bool {
        self.fields.iter().any(|(_, field)| field.rule.has_pattern())
    }
}

/// A schema, ready to check.
#[derive(Debug)]
pub struct Rule {
    kind: Option<InputType>,
    one_of: Option<Vec<Value>>,
    pattern: Option<Arc<Pattern>>,
    min: Option<f64>,
    max: Option<f64>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    items: Option<Box<Rule>>,
    properties: Option<Vec<(String, bool, Rule)>>,
    secret: bool,
}

impl Rule {
    pub fn of(input: &Input, budget: &Budget) -> Result<Self, InvalidPattern> {
        let properties = |all: &crate::shape::Map<Input>| {
            all.0
                .iter()
                .map(|(key, input)| Ok((key.name.clone(), input.is_required(), Self::of(input, budget)?)))
                .collect::<Result<Vec<_>, InvalidPattern>>()
        };
        Ok(Self {
            kind: input.kind,
            one_of: input.one_of.as_ref().map(|all| all.iter().map(crate::shape::Template::to_json).collect()),
            pattern: input.pattern.as_ref().map(|pattern| budget.pattern(pattern)).transpose()?,
            min: input.min.map(|min| min.value),
            max: input.max.map(|max| max.value),
            min_length: input.min_length.map(|min| min.value as usize),
            max_length: input.max_length.map(|max| max.value as usize),
            items: input.items.as_ref().map(|items| Self::of(items, budget).map(Box::new)).transpose()?,
            properties: input.properties.as_ref().map(properties).transpose()?,
            secret: input.is_secret(),
        })
    }

    fn has_pattern(&self) -> bool {
        self.pattern.is_some()
            || self.items.as_ref().is_some_and(|items| items.has_pattern())
            || self.properties.iter().flatten().any(|(_, _, rule)| rule.has_pattern())
    }

    /// The value as the run gets it, and everything that is wrong with it.
    pub fn check(&self, value: &Value, field: &str, budget: &Budget) -> (Value, Vec<InputFault>) {
        let mut faults = Vec::new();
        let value = self.look(value, field, budget, &mut faults);
        (value, faults)
    }

    fn look(&self, value: &Value, field: &str, budget: &Budget, faults: &mut Vec<InputFault>) -> Value {
        if faults.len() >= FAULTS_MAX {
            return value.clone();
        }
        let mut fault = |what: String| faults.push(InputFault { field: field.to_owned(), what });
        if self.secret {
            let reference = as_reference(value);
            if reference.is_none() {
                fault("is a secret: give it as a reference, `${{ secrets.NAME }}`, never as its value".into());
            }
            return reference.unwrap_or(Value::Null);
        }
        if holds_reference(value) {
            fault("refers to a secret, and is not declared as one".into());
            return Value::Null;
        }
        if let Some(expected) = self.kind.filter(|expected| !is(value, *expected)) {
            fault(format!("is {}, expected {}", kind(value), said(expected)));
            return value.clone();
        }
        if let Some(choices) = self.one_of.as_ref().filter(|choices| !choices.contains(value)) {
            let choices: Vec<_> = choices.iter().map(ToString::to_string).collect();
            fault(format!("is {value}, expected one of {}", choices.join(", ")));
        }
        match value {
            Value::String(text) => {
                match self.pattern.as_ref().map(|pattern| (pattern, budget.is_match(pattern, text))) {
                    Some((pattern, Ok(false))) => fault(format!("does not match the pattern `{}`", pattern.as_str())),
                    Some((_, Err(spent))) => fault(format!("cannot be held against its pattern: {spent}")),
                    Some((_, Ok(true))) | None => {}
                }
                self.length(text.chars().count(), "characters", &mut fault);
            }
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                if let Some(min) = self.min.filter(|min| number < *min) {
                    fault(format!("is {value}, the least is {min}"));
                }
                if let Some(max) = self.max.filter(|max| number > *max) {
                    fault(format!("is {value}, the most is {max}"));
                }
            }
            Value::Array(items) => {
                self.length(items.len(), "items", &mut fault);
                if let Some(rule) = &self.items {
                    let each = items.iter().enumerate();
                    return each.map(|(at, item)| rule.look(item, &format!("{field}[{at}]"), budget, faults)).collect();
                }
            }
            Value::Object(given) => {
                if let Some(properties) = &self.properties {
                    return object(properties, given, (field, budget), faults);
                }
            }
            _ => {}
        }
        value.clone()
    }

    fn length(&self, length: usize, what: &str, fault: &mut impl FnMut(String)) {
        if let Some(min) = self.min_length.filter(|min| length < *min) {
            fault(format!("has {length} {what}, the fewest are {min}"));
        }
        if let Some(max) = self.max_length.filter(|max| length > *max) {
            fault(format!("has {length} {what}, the most are {max}"));
        }
    }
}

fn object(
    properties: &[(String, bool, Rule)],
    given: &Map<String, Value>,
    (field, budget): (&str, &Budget),
    faults: &mut Vec<InputFault>,
) -> Value {
    let known = || properties.iter().map(|(name, ..)| name.as_str());
    for name in given.keys().filter(|name| !known().any(|known| known == *name)).take(FAULTS_MAX) {
        let what = format!("is not a field of it; {}", hint(name, known().collect::<Vec<_>>()));
        faults.push(InputFault { field: format!("{field}.{name}"), what });
    }
    let mut bound = Map::new();
    for (name, required, rule) in properties {
        match given.get(name) {
            Some(value) => {
                let looked = rule.look(value, &format!("{field}.{name}"), budget, faults);
                bound.insert(name.clone(), looked);
            }
            None if *required => {
                faults.push(InputFault { field: format!("{field}.{name}"), what: "is missing".into() });
            }
            None => {}
        }
    }
    Value::Object(bound)
}

/// `${{ secrets.NAME }}` or `{"$secret": "NAME"}`, as the latter.
fn as_reference(value: &Value) -> Option<Value> {
    let name = match value {
        Value::String(text) => match pieces::split(text.trim()).ok()?.as_slice() {
            [pieces::Piece::Expression { source, .. }] => reference::secret(source)?.to_owned(),
            _ => return None,
        },
        Value::Object(fields) if fields.len() == 1 => {
            let name = fields.get(SECRET)?.as_str()?;
            reference::secret(&format!("secrets.{name}"))?.to_owned()
        }
        _ => return None,
    };
    Some(serde_json::json!({ SECRET: name }))
}

/// Holds another input of a step against the one before: a secret stands where it stood, by the same name, and nowhere else.
pub fn check_secrets(before: &Value, after: &Value) -> Result<(), InvalidInputs> {
    let mut faults = Vec::new();
    compare_secrets(Some(before), after, "input", &mut faults);
    if faults.is_empty() { Ok(()) } else { Err(InvalidInputs(faults)) }
}

fn compare_secrets(before: Option<&Value>, after: &Value, field: &str, faults: &mut Vec<InputFault>) {
    let is_reference = |value: &Value| value.as_object().is_some_and(|fields| fields.contains_key(SECRET));
    let mut fault = |what: &str| faults.push(InputFault { field: field.to_owned(), what: what.to_owned() });
    if is_reference(after) {
        if before != Some(after) {
            fault("refers to a secret that the workflow does not give this step here");
        }
        return;
    }
    if before.is_some_and(is_reference) {
        fault("is a secret: leave the reference as it is, and never give its value");
        return;
    }
    match after {
        Value::Object(fields) => {
            for (name, value) in fields {
                let old = before.and_then(|before| before.get(name));
                compare_secrets(old, value, &format!("{field}.{name}"), faults);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let old = before.and_then(|before| before.get(at));
                compare_secrets(old, item, &format!("{field}[{at}]"), faults);
            }
        }
        _ => {}
    }
}

/// The caller who gives inputs must not smuggle in a reference that the workflow's author did not ask for.
fn holds_reference(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| name == SECRET || holds_reference(value)),
        Value::Array(items) => items.iter().any(holds_reference),
        _ => false,
    }
}

fn is(value: &Value, expected: InputType) -> bool {
    match expected {
        InputType::String => value.is_string(),
        InputType::Integer => value.is_i64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        InputType::Number => value.is_number(),
        InputType::Boolean => value.is_boolean(),
        InputType::Object => value.is_object(),
        InputType::Array => value.is_array(),
    }
}

const fn said(kind: InputType) -> &'static str {
    match kind {
        InputType::String => "text",
        InputType::Integer => "a whole number",
        InputType::Number => "a number",
        InputType::Boolean => "true or false",
        InputType::Object => "an object",
        InputType::Array => "a list",
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
