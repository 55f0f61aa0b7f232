//! How a type reads itself from a [`Node`], and how it describes itself as JSON Schema: one declaration gives both,
//! so the schema cannot say something else than the reader does.
//!
//! [`record!`] declares a mapping with named fields. The rest are the small types that fields have: [`At`] remembers
//! where a value stood, [`Name`], [`Span`](crate::node::Span), [`Template`], [`Expression`], lists and maps.

use std::ops::Deref;

use interlock_core::limits::NAME_BYTES_MAX;
use interlock_core::time::Millis;
use serde_json::{Map as JsonMap, Value as Json, json};

use crate::diagnostic::{Code, Report};
use crate::duration;
use crate::node::{Key, Node, Span, Value};
use interlock_core::text::nearest::hint;

pub trait Shape: Sized {
    /// The value, or nothing where the report says why.
    fn read(node: &Node, report: &mut Report) -> Option<Self>;

    fn schema(defs: &mut Defs) -> Json;

    /// What a field of this type is where it is not given; nothing where it must be.
    fn absent() -> Option<Self> {
        None
    }
}

/// The schemas of records, by name.
#[derive(Default)]
pub struct Defs(pub JsonMap<String, Json>);

impl Defs {
    /// A reference to a record's schema, made the first time.
    pub fn record(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Json) -> Json {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), Json::Null);
            let schema = make(self);
            self.0.insert(name.to_owned(), schema);
        }
        json!({ "$ref": format!("#/$defs/{name}") })
    }
}

/// Declares a mapping: a struct, its reader, its schema.
macro_rules! record {
    (
        $(#[doc = $doc:literal])+
        $what:literal $name:ident { $($(#[doc = $field_doc:literal])+ $field:ident $(($key:literal))?: $type:ty,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone)]
        pub struct $name {
            pub span: $crate::node::Span,
            $($(#[doc = $field_doc])+ pub $field: $type,)+
        }

        impl $name {
            /// The fields that the file may name.
            pub const FIELDS: &'static [&'static str] = &[$($crate::shape::key!($field $($key)?)),+];
        }

        impl $crate::shape::Shape for $name {
            fn read(node: &$crate::node::Node, report: &mut $crate::diagnostic::Report) -> Option<Self> {
                let fields = $crate::shape::open(node, $what, Self::FIELDS, report)?;
                let at = node.span;
                $(let $field = $crate::shape::field(
                    fields, $crate::shape::key!($field $($key)?), $what, at, report);)+
                Some(Self { span: at, $($field: $field?),+ })
            }

            fn schema(defs: &mut $crate::shape::Defs) -> serde_json::Value {
                defs.record(stringify!($name), |defs| {
                    let mut properties = serde_json::Map::new();
                    let mut required: Vec<&str> = Vec::new();
                    $({
                        let key = $crate::shape::key!($field $($key)?);
                        let schema = <$type as $crate::shape::Shape>::schema(defs);
                        let text = concat!($($field_doc),+).trim();
                        properties.insert(key.to_owned(), $crate::shape::described(schema, text));
                        if <$type as $crate::shape::Shape>::absent().is_none() {
                            required.push(key);
                        }
                    })+
                    let mut schema = serde_json::json!({
                        "description": concat!($($doc),+).trim(),
                        "type": "object",
                        "properties": properties,
                        "additionalProperties": false,
                    });
                    if !required.is_empty() {
                        schema["required"] = required.into();
                    }
                    schema
                })
            }
        }
    };
}
pub(crate) use record;

macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}
pub(crate) use key;

pub fn described(mut schema: Json, text: &str) -> Json {
    schema["description"] = text.into();
    schema
}

/// The fields of a mapping; those that it does not have are reported.
pub fn open<'a>(node: &'a Node, what: &str, known: &[&str], report: &mut Report) -> Option<&'a [(Key, Node)]> {
    let Value::Map(fields) = &node.value else {
        let message = format!("{what} is a mapping, found {}", node.kind());
        report.error(Code::WrongType, node.span, message).help(format!("its fields are {}", listed(known)));
        return None;
    };
    for (key, _) in fields.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
        let message = format!("{what} has no field `{}`", key.name);
        report.error(Code::UnknownField, key.span, message).help(hint(&key.name, known.iter().copied()));
    }
    Some(fields)
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One field of a mapping; `null` counts as not given.
pub fn field<T: Shape>(fields: &[(Key, Node)], key: &str, what: &str, at: Span, report: &mut Report) -> Option<T> {
    match fields.iter().find(|(known, _)| known.name == key) {
        Some((_, node)) if !matches!(node.value, Value::Null) => T::read(node, report),
        given => T::absent().or_else(|| {
            let span = given.map_or(Span { start: at.start, end: at.start }, |(key, _)| key.span);
            report.error(Code::MissingField, span, format!("{what} needs `{key}`"));
            None
        }),
    }
}

fn expected(node: &Node, what: &str, report: &mut Report) {
    let diagnostic = report.error(Code::WrongType, node.span, format!("expected {what}, found {}", node.kind()));
    if what.contains("text") && matches!(node.value, Value::Int(_) | Value::Float(_) | Value::Bool(_)) {
        diagnostic.help("put it in quotes");
    }
}

impl<T: Shape> Shape for Option<T> {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        T::read(node, report).map(Some)
    }

    fn schema(defs: &mut Defs) -> Json {
        T::schema(defs)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Shape> Shape for Box<T> {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        T::read(node, report).map(Self::new)
    }

    fn schema(defs: &mut Defs) -> Json {
        T::schema(defs)
    }
}

/// A list; none where it is not given.
impl<T: Shape> Shape for Vec<T> {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::List(items) = &node.value else {
            expected(node, "a list", report);
            return None;
        };
        // Read all of them before giving up on one.
        let read: Vec<_> = items.iter().map(|item| T::read(item, report)).collect();
        read.into_iter().collect()
    }

    fn schema(defs: &mut Defs) -> Json {
        json!({ "type": "array", "items": T::schema(defs) })
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

/// A list that may be written as its only item.
#[derive(Debug, Clone)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T: Shape> Shape for OneOrMany<T> {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(node.value, Value::List(_)) {
            return Vec::read(node, report).map(Self);
        }
        T::read(node, report).map(|one| Self(vec![one]))
    }

    fn schema(defs: &mut Defs) -> Json {
        let one = T::schema(defs);
        json!({ "oneOf": [one, { "type": "array", "items": one }] })
    }

    fn absent() -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

/// A mapping whose keys are free, in the order of the file.
#[derive(Debug, Clone)]
pub struct Map<T>(pub Vec<(Key, T)>);

impl<T> Map<T> {
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.0.iter().map(|(key, _)| key.name.as_str())
    }
}

impl<T: Shape> Shape for Map<T> {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::Map(fields) = &node.value else {
            expected(node, "a mapping", report);
            return None;
        };
        let read: Vec<_> = fields
            .iter()
            .map(|(key, node)| {
                let named = check_name(&key.name, key.span, report);
                let value = T::read(node, report);
                named.then_some(())?;
                value.map(|value| (key.clone(), value))
            })
            .collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Self)
    }

    fn schema(defs: &mut Defs) -> Json {
        json!({ "type": "object", "additionalProperties": T::schema(defs) })
    }

    fn absent() -> Option<Self> {
        Some(Self(Vec::new()))
    }
}

/// A value and where it stood.
#[derive(Debug, Clone, Copy)]
pub struct At<T> {
    pub value: T,
    pub span: Span,
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Shape> Shape for At<T> {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        T::read(node, report).map(|value| Self { value, span: node.span })
    }

    fn schema(defs: &mut Defs) -> Json {
        T::schema(defs)
    }
}

impl Shape for String {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let text = node.as_text().map(str::to_owned);
        if text.is_none() {
            expected(node, "text", report);
        }
        text
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "string" })
    }
}

impl Shape for bool {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if let Value::Bool(truth) = node.value {
            return Some(truth);
        }
        expected(node, "`true` or `false`", report);
        None
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "boolean" })
    }
}

impl Shape for f64 {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        match node.value {
            Value::Int(number) => Some(number as Self),
            Value::Float(number) => Some(number),
            _ => {
                expected(node, "a number", report);
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "number" })
    }
}

impl Shape for u32 {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::Int(number) = node.value else {
            expected(node, "a whole number", report);
            return None;
        };
        let read = Self::try_from(number).ok();
        if read.is_none() {
            let message = format!("{number} is out of range: expected 0 to {}", Self::MAX);
            report.error(Code::InvalidValue, node.span, message);
        }
        read
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "integer", "minimum": 0, "maximum": Self::MAX })
    }
}

impl Shape for i32 {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::Int(number) = node.value else {
            expected(node, "a whole number", report);
            return None;
        };
        let read = Self::try_from(number).ok();
        if read.is_none() {
            report.error(Code::InvalidValue, node.span, format!("{number} is out of range"));
        }
        read
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "integer", "minimum": Self::MIN, "maximum": Self::MAX })
    }
}

/// `30s`, `10m`, `2h`, `1h30m`, `7d`.
impl Shape for Millis {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Some(text) = node.as_text() else {
            let diagnostic =
                report.error(Code::WrongType, node.span, format!("expected a duration, found {}", node.kind()));
            if let Value::Int(number) = node.value {
                diagnostic.help(format!("say in which unit: `{number}s`, `{number}m`, `{number}h`"));
            }
            return None;
        };
        match duration::parse(text) {
            Ok(span) => Some(span),
            Err(error) => {
                report
                    .error(Code::InvalidValue, node.span, error.to_string())
                    .help("write `30s`, `10m`, `1h30m`, `7d`");
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "string", "pattern": duration::PATTERN, "examples": ["30s", "10m", "2h", "7d"] })
    }
}

/// A name: of a workflow, a step, a task, a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub String);

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Shape for Name {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let text = String::read(node, report)?;
        check_name(&text, node.span, report).then_some(Self(text))
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "string", "pattern": NAME_PATTERN, "minLength": 1, "maxLength": NAME_BYTES_MAX })
    }
}

const NAME_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9_.:/-]*$";

fn check_name(name: &str, span: Span, report: &mut Report) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-');
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if !starts || !name.chars().all(inner) {
        report
            .error(Code::InvalidName, span, format!("`{name}` is not a name"))
            .help("names hold letters, digits, `_`, `-`, `.`, `:` and `/`, and begin with a letter, a digit or `_`");
        return false;
    }
    if name.len() > NAME_BYTES_MAX {
        let (bytes, max) = (name.len(), NAME_BYTES_MAX);
        report.error(Code::InvalidName, span, format!("the name is {bytes} characters long, the limit is {max}"));
        return false;
    }
    true
}

/// Any value; texts in it may hold `${{ … }}`.
#[derive(Debug, Clone)]
pub struct Template(pub Node);

impl Template {
    pub fn to_json(&self) -> Json {
        self.0.to_json()
    }
}

impl Shape for Template {
    fn read(node: &Node, _: &mut Report) -> Option<Self> {
        Some(Self(node.clone()))
    }

    fn schema(_: &mut Defs) -> Json {
        json!({})
    }
}

/// A text that may hold `${{ … }}`.
#[derive(Debug, Clone)]
pub struct TextTemplate(pub At<String>);

impl Shape for TextTemplate {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        At::read(node, report).map(Self)
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": "string" })
    }
}

/// One expression, with or without `${{ }}` around it.
#[derive(Debug, Clone)]
pub struct Expression(pub At<String>);

impl Shape for Expression {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        match &node.value {
            Value::Text(text) => Some(Self(At { value: text.to_string(), span: node.span })),
            Value::Bool(truth) => Some(Self(At { value: truth.to_string(), span: node.span })),
            _ => {
                expected(node, "an expression as text", report);
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> Json {
        json!({ "type": ["string", "boolean"] })
    }
}

/// Reads a word of one of core's closed sets.
macro_rules! words {
    ($($type:ty),+ $(,)?) => {
        $(impl $crate::shape::Shape for $type {
            fn read(node: &$crate::node::Node, report: &mut $crate::diagnostic::Report) -> Option<Self> {
                let known = Self::ALL.iter().map(|word| word.as_str());
                $crate::shape::word(node, known, report)?.parse().ok()
            }

            fn schema(_: &mut $crate::shape::Defs) -> serde_json::Value {
                let known: Vec<_> = Self::ALL.iter().map(|word| word.as_str()).collect();
                serde_json::json!({ "enum": known })
            }
        })+
    };
}
pub(crate) use words;

pub fn word<'a>(node: &'a Node, known: impl Iterator<Item = &'a str> + Clone, report: &mut Report) -> Option<&'a str> {
    let Some(text) = node.as_text() else {
        let words: Vec<_> = known.map(|word| format!("`{word}`")).collect();
        let message = format!("expected one of {}, found {}", words.join(", "), node.kind());
        report.error(Code::WrongType, node.span, message);
        return None;
    };
    if known.clone().any(|word| word == text) {
        return Some(text);
    }
    report.error(Code::InvalidValue, node.span, format!("`{text}` is not known here")).help(hint(text, known));
    None
}
