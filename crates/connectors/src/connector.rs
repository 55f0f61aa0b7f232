//! What every connector answers.

use std::fmt;

use interlock_core::json::Json;
use interlock_core::run::card::FieldChange;
use interlock_core::state::EffectClass;
use interlock_core::time::Timestamp;
use serde_json::Value;

use crate::connection::Connection;
use crate::declaration::{Declaration, Reversal};
use crate::failure::CallFailure;
use crate::fields::Fields;
use crate::request::{Request, Response};

/// The exact inverse of something that was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Inverse {
    pub operation: &'static str,
    pub fields: Value,
}

/// What is known when a call is made.
#[derive(Debug, Clone, Default)]
pub struct CallFacts {
    /// The effect key: the same for every automatic repeat.
    pub key: String,
    /// The state before, where the connector reads it.
    pub before: Option<Value>,
    /// Nothing of this effect can be older.
    pub since: Option<Timestamp>,
}

impl CallFacts {
    /// A short mark of the key, for texts in which it can be found again.
    pub fn mark(&self) -> String {
        interlock_core::keys::fields_hash(self.key.as_bytes())
    }
}

/// One field that would change.
pub fn change(field: &str, before: &Value, after: &Value) -> FieldChange {
    let json = |value: &Value| Json::trusted(value.to_string());
    FieldChange { field: field.to_owned(), before: json(before), after: json(after) }
}

/// What a target says about a call whose answer was lost.
#[derive(Debug, Clone, PartialEq)]
pub enum Probed {
    /// It happened, and this is what the call would have answered.
    Happened(Value),
    /// There is no trace of it. It may still be on its way.
    NoTrace,
    CannotTell(String),
}

/// One operation of one system.
pub trait Connector: fmt::Debug + Send + Sync {
    fn declaration(&self) -> &'static Declaration;

    /// How safe a repeat is with these fields. What is not known yet counts as the worst that it may become.
    fn effect(&self, _fields: &Fields) -> EffectClass {
        self.declaration().effect
    }

    /// Whether the class depends on the fields, for the reference page: then [`Connector::effect`] says how.
    fn effect_varies(&self) -> bool {
        false
    }

    /// The connection that the fields name.
    fn connection<'a>(&self, fields: &'a Fields) -> &'a str {
        fields.text("connection")
    }

    /// What no single field can say.
    fn check(&self, _fields: &Fields) -> Result<(), String> {
        Ok(())
    }

    /// The effect in the words of the target. What makes it unique to a step of a run is added by the server.
    fn key(&self, fields: &Fields, at: &Connection) -> String;

    /// The request that reads the present state.
    fn before(&self, _fields: &Fields, _at: &Connection) -> Option<Request> {
        None
    }

    fn read_before(&self, _fields: &Fields, answer: &Response) -> Result<Value, CallFailure> {
        answer.json()
    }

    /// Each field that the operation would change, with what the present state has: for the approvers.
    fn changes(&self, _fields: &Fields, _before: &Value) -> Vec<FieldChange> {
        Vec::new()
    }

    /// The fields that do not have what the operation sets, in a state that was read after it.
    fn remaining(&self, fields: &Fields, present: &Value) -> Vec<String> {
        let left = self.changes(fields, present).into_iter().filter(|change| change.before != change.after);
        left.map(|change| format!("`{}`", change.field)).collect()
    }

    /// What is sent, in this order.
    fn requests(&self, fields: &Fields, at: &Connection, facts: &CallFacts) -> Result<Vec<Request>, CallFailure>;

    /// The output, out of all answers.
    fn read(&self, fields: &Fields, facts: &CallFacts, answers: &[Response]) -> Result<Value, CallFailure>;

    /// The request that finds out whether a call has happened.
    fn probe(&self, _fields: &Fields, _at: &Connection, _facts: &CallFacts) -> Option<Request> {
        None
    }

    fn read_probe(&self, _fields: &Fields, _facts: &CallFacts, _answer: &Response) -> Probed {
        Probed::CannotTell("this operation cannot be asked about".to_owned())
    }

    /// How exactly this is undone, or why it cannot be.
    fn inverse(&self, _fields: &Fields, _output: &Value) -> Result<Inverse, String> {
        Err(match self.declaration().reversal {
            Reversal::NotNeeded => "it has changed nothing".to_owned(),
            Reversal::Irreversible(why) => why.to_owned(),
            Reversal::Inverse { .. } => "what it has changed is not known".to_owned(),
        })
    }
}
