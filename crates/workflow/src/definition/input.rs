//! What a run takes.

use std::fmt;
use std::str::FromStr;

use crate::diagnostic::Report;
use crate::node::{Node, Value};
use crate::shape::{At, Defs, Map, Shape, Template, record, words};

/// The type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputType {
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
}

impl InputType {
    pub const ALL: &'static [Self] =
        &[Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Object, Self::Array];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }
}

impl FromStr for InputType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|kind| kind.as_str() == text).copied().ok_or(())
    }
}

impl fmt::Display for InputType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

words!(InputType);

record! {
    /// The schema of one input. The words are those of JSON Schema.
    "an input" InputSchema {
        /// Its type; anything where omitted.
        kind ("type"): Option<InputType>,
        /// What it means, for the person who fills it in.
        description: Option<String>,
        /// A run cannot start without it.
        required: Option<bool>,
        /// Its value where none is given.
        default: Option<Template>,
        /// The values it may have.
        one_of ("enum"): Option<Vec<Template>>,
        /// A regular expression that a text must match somewhere; anchor it with `^` and `$`.
        pattern: Option<At<String>>,
        /// The smallest number.
        min: Option<At<f64>>,
        /// The largest number.
        max: Option<At<f64>>,
        /// The fewest characters of a text, or items of an array.
        min_length: Option<At<u32>>,
        /// The most characters of a text, or items of an array.
        max_length: Option<At<u32>>,
        /// The schema of an array's items.
        items: Option<Box<Input>>,
        /// The schemas of an object's fields; other fields are refused.
        properties: Option<Map<Input>>,
        /// The value is a secret and may only be given as a reference: `${{ secrets.NAME }}`.
        secret: Option<bool>,
        /// Runs can be found by it. A value has at most 128 bytes.
        searchable: Option<bool>,
    }
}

/// An input, which may be written as nothing but its type.
#[derive(Debug, Clone)]
pub struct Input(pub InputSchema);

impl std::ops::Deref for Input {
    type Target = InputSchema;

    fn deref(&self) -> &InputSchema {
        &self.0
    }
}

impl Input {
    pub fn is_required(&self) -> bool {
        self.required == Some(true)
    }

    pub fn is_secret(&self) -> bool {
        self.secret == Some(true)
    }

    pub fn is_searchable(&self) -> bool {
        self.searchable == Some(true)
    }
}

impl Shape for Input {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        let Value::Text(_) = node.value else { return InputSchema::read(node, report).map(Self) };
        let schema = InputSchema {
            span: node.span,
            kind: Some(InputType::read(node, report)?),
            description: None,
            required: None,
            default: None,
            one_of: None,
            pattern: None,
            min: None,
            max: None,
            min_length: None,
            max_length: None,
            items: None,
            properties: None,
            secret: None,
            searchable: None,
        };
        Some(Self(schema))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        serde_json::json!({ "oneOf": [InputType::schema(defs), InputSchema::schema(defs)] })
    }
}
