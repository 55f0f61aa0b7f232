//! The fields of an operation, once they have been checked: what a connector's methods read.

use interlock_core::json::canonical;
use interlock_core::keys::fields_hash;
use serde_json::{Map, Value};

use crate::declaration::Declaration;
use crate::schema::{FieldFault, Filling, faults, fill_defaults};

/// Checked and complete: what is required is there, what was left out has its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// Checks what the expressions of a step have come to.
    pub fn check(declaration: &Declaration, mut value: Value) -> Result<Self, Vec<FieldFault>> {
        if value.is_null() {
            value = Value::Object(Map::new());
        }
        let found = faults(declaration.fields, &value, Filling::Rendered);
        if !found.is_empty() {
            return Err(found);
        }
        fill_defaults(declaration.fields, &mut value);
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => Ok(Self(Map::new())),
        }
    }

    /// What a file says, with the defaults that it leaves to the connector. Texts in it may hold expressions: what they
    /// become is not known yet, and no check may rely on it.
    pub fn written(declaration: &Declaration, mut value: Value) -> Self {
        fill_defaults(declaration.fields, &mut value);
        match value {
            Value::Object(fields) => Self(fields),
            _ => Self(Map::new()),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text; empty where it is not given.
    pub fn text(&self, name: &str) -> &str {
        self.opt_text(name).unwrap_or_default()
    }

    pub fn opt_text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub fn whole(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }

    pub fn texts(&self, name: &str) -> Vec<&str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub fn map(&self, name: &str) -> impl Iterator<Item = (&str, &Value)> {
        self.0.get(name).and_then(Value::as_object).into_iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    /// The hash of some of them, for an effect key.
    pub fn hash_of(&self, names: &[&str]) -> String {
        let chosen: Map<String, Value> = names
            .iter()
            .filter_map(|name| self.0.get(*name).map(|value| ((*name).to_owned(), value.clone())))
            .collect();
        fields_hash(&canonical(&chosen).expect("checked fields have a canonical form"))
    }

    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}
