//! The details of an entry that stands for a row of a run's journal: the text whose salted hash the entry holds. Inputs
//! and outputs are in it by hash and length only.

use interlock_core::json::{Hash, HashHex, Json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A payload, by what can be said about it without showing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadFacts {
    pub bytes: u64,
    pub sha256: HashHex,
}

impl PayloadFacts {
    pub fn of(json: &Json) -> Self {
        Self { bytes: json.len() as u64, sha256: HashHex(Hash::of(json.as_str().as_bytes())) }
    }
}

/// The step that a row of the journal finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoneStep {
    pub attempt: u32,
    pub failures: u32,
    pub iteration: u32,
    pub position: u32,
    pub state: String,
}

/// What a row of the journal says, with the fields in the order of their names.
#[derive(Debug, Clone, Serialize)]
pub struct RowDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<DoneStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Json>,
    pub events: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<PayloadFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<PayloadFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl RowDetails {
    /// The text that is hashed.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("JSON of the store is JSON")
    }
}

/// The same, read back from a text that was shown.
#[derive(Debug, Clone, Deserialize)]
pub struct ReadDetails {
    #[serde(default)]
    pub context: Option<Value>,
    #[serde(default)]
    pub done: Option<DoneStep>,
    #[serde(default)]
    pub events: Vec<Value>,
    #[serde(default)]
    pub output: Option<PayloadFacts>,
}

impl ReadDetails {
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// How a run has ended, by the event that says so.
pub fn ended_by(event: &Value) -> Option<&str> {
    match event["event"].as_str()? {
        "session.completed" => Some("succeeded"),
        "session.failed" => Some(event["state"].as_str().unwrap_or("failed")),
        "session.canceled" if event["done"] == Value::Bool(true) => Some("canceled"),
        _ => None,
    }
}
