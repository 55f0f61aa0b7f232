//! A YAML document as a tree that remembers where everything stood.

use std::sync::Arc;

use serde_json::Value as Json;

/// A position in the text. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
pub struct LineColumn {
    pub line: usize,
    pub column: usize,
}

/// From the first character to behind the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
pub struct Span {
    pub start: LineColumn,
    pub end: LineColumn,
}

impl Span {
    pub const FIRST: Self = Self { start: LineColumn { line: 1, column: 1 }, end: LineColumn { line: 1, column: 2 } };
}

#[derive(Debug, Clone)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

/// A value. Whatever can be long is shared: an alias, or a field that keeps its node, costs a reference and no copy.
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    List(Arc<Vec<Node>>),
    /// In the order of the file; keys are unique.
    Map(Arc<Vec<(Key, Node)>>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    pub span: Span,
}

impl Node {
    /// What it is, for "expected …, found …".
    pub const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same as JSON, without the places.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(truth) => Json::Bool(*truth),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => Json::from(*number),
            Value::Text(text) => Json::String(text.to_string()),
            Value::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Map(fields) => {
                Json::Object(fields.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect())
            }
        }
    }

    /// Visits every text in the tree, where it stands.
    pub fn texts<'a>(&'a self, visit: &mut impl FnMut(&'a str, Span)) {
        match &self.value {
            Value::Text(text) => visit(text, self.span),
            Value::List(items) => items.iter().for_each(|item| item.texts(visit)),
            Value::Map(fields) => fields.iter().for_each(|(_, node)| node.texts(visit)),
            _ => {}
        }
    }
}
