//! Webhooks from outside, purely: whether a request is genuine, and what it is about.
//!
//! One file per source. Each has a `verify` over the raw bytes that answers whether one of the endpoint's secrets
//! made the signature (two are active while one replaces the other), and a `read` that names the [`Delivery`]: its
//! key, which makes repeats one delivery, and what it says.

pub mod generic;
pub mod github;
mod mac;
pub mod servicenow;
pub mod slack;
pub mod slack_interaction;
pub mod standard;

use serde_json::Value;

use crate::json::{NUL, check_exact, is_shallow, too_deep};
use crate::limits;
use crate::time::Millis;

/// How old or how far ahead a signed timestamp may be.
pub const TOLERANCE: Millis = Millis::from_mins(5);

/// Why a request is not taken for genuine. Says nothing about the secret or the expected signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    #[error("the signature's header cannot be read")]
    Malformed,
    #[error("the signature was made more than five minutes ago, or by a clock that is ahead")]
    Stale,
    #[error("the signature does not match the body")]
    Mismatch,
}

/// Why a genuine request cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("the header `{0}` is missing")]
    MissingHeader(&'static str),
    #[error("the body cannot be read: {0}")]
    Body(String),
    #[error("the field `{0}` is missing")]
    MissingField(&'static str),
    #[error("{0} holds a NUL character, which no name has")]
    Nul(&'static str),
    #[error("the delivery's id is longer than {max} bytes", max = limits::KEY_BYTES_MAX)]
    KeyTooLong,
}

/// Header values by lower-case name.
pub trait Headers {
    fn value(&self, name: &str) -> Option<&str>;
}

impl Headers for std::collections::BTreeMap<String, String> {
    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}

/// Where a delivery's id stands, and so what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdPlace {
    /// The sender's proof covers the ids of all its deliveries: equal ids are one delivery.
    Proven,
    /// In the body, which is signed. Another body may have brought the same id in a header.
    Body,
    /// In a header, which is not signed: whoever has seen a delivery can send it again under any id.
    Header,
}

/// What a genuine request is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The trigger's key.
    pub key: String,
    pub id: IdPlace,
    /// What happened, in the source's own word: `pull_request`, `/deploy`, `incident`.
    pub event: String,
    pub payload: Value,
    /// Deliveries that agree in this within a few seconds are one, whatever their ids and bodies say.
    pub fingerprint: Option<String>,
}

fn json(body: &[u8]) -> Result<Value, ReadError> {
    if !is_shallow(body) {
        return Err(ReadError::Body(too_deep()));
    }
    let text = std::str::from_utf8(body).map_err(|error| ReadError::Body(error.to_string()))?;
    let value = serde_json::from_str(text).map_err(|error| ReadError::Body(error.to_string()))?;
    check_exact(text).map_err(ReadError::Body)?;
    Ok(value)
}

fn text_of(value: &Value, path: &[&str]) -> Option<String> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What happened, by name. One with a NUL would be stored as another.
fn event_of(name: Option<String>) -> Result<String, ReadError> {
    let name = name.unwrap_or_default();
    if name.contains(NUL) { Err(ReadError::Nul("the event's name")) } else { Ok(name) }
}

/// Control characters, and so NUL too, are refused with the key.
fn key_of(key: crate::keys::TriggerKey<'_>) -> Result<String, ReadError> {
    key.render().map_err(|rejection| match rejection {
        crate::rejection::Rejection::TooLarge { .. } => ReadError::KeyTooLong,
        other => ReadError::Body(other.to_string()),
    })
}
