//! CloudEvents 1.0 in JSON, as signals come in: structured (one document) or binary (attributes in headers).

use serde_json::Value;

use crate::json::{Json, NUL, is_shallow, too_deep};
use crate::webhook::Headers;

pub const STRUCTURED: &str = "application/cloudevents+json";
const VERSION: &str = "1.0";
const BROADCAST: &str = "broadcast";

/// What of an event matters to a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudEvent {
    pub kind: String,
    /// What the event is about: the key by which a wait is found.
    pub subject: Option<String>,
    /// The producer and its id for the event: together they are unique.
    pub source_id: String,
    pub data: Json,
    /// Our extension: for everybody who waits, not for one.
    pub broadcast: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEvent {
    #[error("the attribute `{0}` of the event is missing or empty")]
    Missing(&'static str),
    #[error("the event is of version `{0}`; this server reads CloudEvents 1.0")]
    Version(String),
    #[error("the attribute `{0}` of the event holds a NUL character")]
    Nul(&'static str),
    #[error("the attribute `broadcast` of the event is neither true nor false")]
    Broadcast,
    #[error("the event's data is not JSON; send it as `application/json`")]
    Data,
    #[error("the event cannot be read: {0}")]
    Syntax(String),
}

/// One document that holds the attributes and the data.
pub fn structured(body: &[u8]) -> Result<CloudEvent, InvalidEvent> {
    shallow(body)?;
    let event: Value = serde_json::from_slice(body).map_err(|error| InvalidEvent::Syntax(error.to_string()))?;
    let attribute = |name: &'static str| match event.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) if name == BROADCAST => Some(flag.to_string()),
        _ => None,
    };
    if event.get("data_base64").is_some() {
        return Err(InvalidEvent::Data);
    }
    let data = event.get("data").cloned().unwrap_or(Value::Null);
    make(attribute, Json::trusted(data.to_string()))
}

/// The attributes in headers `ce-…`, the data in the body.
pub fn binary(headers: &impl Headers, body: &[u8]) -> Result<CloudEvent, InvalidEvent> {
    let media_type = headers.value("content-type").unwrap_or_default();
    let is_json = media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    let data = match (body.is_empty(), is_json) {
        (true, _) => Json::null(),
        (false, false) => return Err(InvalidEvent::Data),
        (false, true) => {
            shallow(body)?;
            let text = std::str::from_utf8(body).map_err(|error| InvalidEvent::Syntax(error.to_string()))?;
            Json::parse(text, usize::MAX).map_err(|error| InvalidEvent::Syntax(error.to_string()))?
        }
    };
    make(|name| headers.value(&format!("ce-{name}")).map(str::to_owned), data)
}

fn shallow(body: &[u8]) -> Result<(), InvalidEvent> {
    if is_shallow(body) { Ok(()) } else { Err(InvalidEvent::Syntax(too_deep())) }
}

/// Whether a request carries an event in binary mode.
pub fn is_binary(headers: &impl Headers) -> bool {
    headers.value("ce-specversion").is_some()
}

fn make(attribute: impl Fn(&'static str) -> Option<String>, data: Json) -> Result<CloudEvent, InvalidEvent> {
    for name in ["id", "source", "type", "subject"] {
        if attribute(name).is_some_and(|text| text.contains(NUL)) {
            return Err(InvalidEvent::Nul(name));
        }
    }
    let needed = |name| attribute(name).filter(|text| !text.is_empty()).ok_or(InvalidEvent::Missing(name));
    let version = needed("specversion")?;
    if version != VERSION {
        return Err(InvalidEvent::Version(version.chars().take(16).collect()));
    }
    let (id, source) = (needed("id")?, needed("source")?);
    let subject = attribute("subject").filter(|text| !text.is_empty());
    let broadcast = match attribute(BROADCAST).as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(InvalidEvent::Broadcast),
    };
    Ok(CloudEvent { kind: needed("type")?, subject, source_id: format!("{source}#{id}"), data, broadcast })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const WHOLE: &str = r#"{"specversion":"1.0","id":"A234-1234-1234","source":"https://example.com/storage",
        "type":"com.example.object.created","subject":"mynewfile.jpg","time":"2018-04-05T17:31:00Z",
        "datacontenttype":"application/json","data":{"size":3}}"#;

    #[test]
    fn both_modes_say_the_same() {
        let event = structured(WHOLE.as_bytes()).unwrap();
        assert_eq!(event.source_id, "https://example.com/storage#A234-1234-1234");
        assert_eq!((event.kind.as_str(), event.data.as_str()), ("com.example.object.created", r#"{"size":3}"#));
        let pairs = [
            ("ce-specversion", "1.0"),
            ("ce-id", "A234-1234-1234"),
            ("ce-source", "https://example.com/storage"),
            ("ce-type", "com.example.object.created"),
            ("ce-subject", "mynewfile.jpg"),
            ("content-type", "application/json; charset=utf-8"),
        ];
        let headers: BTreeMap<_, _> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert!(is_binary(&headers));
        assert_eq!(binary(&headers, br#"{"size":3}"#).unwrap(), event);
        assert_eq!(binary(&headers, b"").unwrap().data, Json::null());
    }

    #[test]
    fn an_event_for_everybody_says_so() {
        let with = |value: &str| WHOLE.replacen('{', &format!("{{\"broadcast\":{value},"), 1);
        for (value, broadcast) in [("true", true), ("\"true\"", true), ("false", false)] {
            assert_eq!(structured(with(value).as_bytes()).unwrap().broadcast, broadcast, "{value}");
        }
        assert_eq!(structured(with("\"yes\"").as_bytes()), Err(InvalidEvent::Broadcast));
    }

    #[test]
    fn what_is_no_event_is_refused_by_name() {
        for (body, error) in [
            (r#"{"id":"1"}"#, InvalidEvent::Missing("specversion")),
            (r#"{"specversion":"0.3"}"#, InvalidEvent::Version("0.3".into())),
            (r#"{"specversion":"1.0","id":"","source":"s","type":"t"}"#, InvalidEvent::Missing("id")),
            (r#"{"specversion":"1.0","id":"1","type":"t"}"#, InvalidEvent::Missing("source")),
            (r#"{"specversion":"1.0","id":"1","source":"s"}"#, InvalidEvent::Missing("type")),
            (r#"{"specversion":"1.0","data_base64":"AA=="}"#, InvalidEvent::Data),
            (r#"{"specversion":"1.0","id":"1","source":"s","type":"a\u0000b"}"#, InvalidEvent::Nul("type")),
        ] {
            assert_eq!(structured(body.as_bytes()), Err(error), "{body}");
        }
        let deep = |levels: usize| format!("{{\"data\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(structured(deep(63).as_bytes()), Err(InvalidEvent::Missing("specversion")));
        assert_eq!(structured(deep(64).as_bytes()), Err(InvalidEvent::Syntax(too_deep())));
        assert!(matches!(structured(b"{"), Err(InvalidEvent::Syntax(_))));
    }
}
