//! CloudEvents 1.0 in JSON, as signals come in: structured (one document) or binary (attributes in headers).

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{Json, NUL, is_shallow, too_deep};
use crate::trigger::webhook::Headers;

const STRUCTURED: &str = "application/cloudevents+json";
/// What the media types of all modes and formats begin with.
const FAMILY: &str = "application/cloudevents";
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
    /// Interlock's extension: a signal for all waits on it, not for one.
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
    #[error("the attribute `{0}` of the event is not UTF-8 once its percent signs are decoded")]
    Encoding(&'static str),
    #[error(
        "this server does not read events as `{0}`; send one event as `application/cloudevents+json`, or with its attributes in `ce-` headers"
    )]
    Mode(String),
}

/// How a request carries an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Structured,
    Binary,
}

/// How a request carries an event; none where it carries none. A mode or a format of CloudEvents that is not read here
/// is refused by its name rather than taken for something else.
pub fn mode(headers: &impl Headers) -> Result<Option<Mode>, InvalidEvent> {
    let media_type = media_type(headers);
    if media_type == STRUCTURED {
        return Ok(Some(Mode::Structured));
    }
    if media_type.starts_with(FAMILY) {
        return Err(InvalidEvent::Mode(media_type.chars().take(80).collect()));
    }
    Ok(headers.value("ce-specversion").is_some().then_some(Mode::Binary))
}

/// The media type without its parameters; its case means nothing.
fn media_type(headers: &impl Headers) -> String {
    let given = headers.value("content-type").unwrap_or_default();
    given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// One document that holds the attributes and the data.
pub fn structured(body: &[u8]) -> Result<CloudEvent, InvalidEvent> {
    shallow(body)?;
    // The data is kept as the text that was sent.
    let event: BTreeMap<String, &RawValue> =
        serde_json::from_slice(body).map_err(|error| InvalidEvent::Syntax(error.to_string()))?;
    let attribute = |name: &'static str| match serde_json::from_str::<Value>(event.get(name)?.get()).ok()? {
        Value::String(text) => Some(text),
        Value::Bool(flag) if name == BROADCAST => Some(flag.to_string()),
        _ => None,
    };
    if event.contains_key("data_base64") {
        return Err(InvalidEvent::Data);
    }
    make(attribute, event.get("data").map_or_else(Json::null, |data| Json::trusted(data.get())))
}

/// The attributes in headers `ce-…`, the data in the body.
pub fn binary(headers: &impl Headers, body: &[u8]) -> Result<CloudEvent, InvalidEvent> {
    let media_type = media_type(headers);
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    let data = match (body.is_empty(), is_json) {
        (true, _) => Json::null(),
        (false, false) => return Err(InvalidEvent::Data),
        (false, true) => {
            shallow(body)?;
            let text = std::str::from_utf8(body).map_err(|error| InvalidEvent::Syntax(error.to_string()))?;
            Json::parse(text, usize::MAX).map_err(|error| InvalidEvent::Syntax(error.to_string()))?
        }
    };
    for name in ATTRIBUTES {
        if headers.value(&format!("ce-{name}")).is_some_and(|value| decoded(value).is_none()) {
            return Err(InvalidEvent::Encoding(name));
        }
    }
    make(|name| headers.value(&format!("ce-{name}")).and_then(decoded), data)
}

const ATTRIBUTES: [&str; 6] = ["specversion", "id", "source", "type", "subject", BROADCAST];

/// An attribute as a header spells it: what is not printable ASCII, a space, a quote or a percent sign stands as
/// `%` and two digits for each byte of its UTF-8, and the whole may stand in quotes. None where that is no text.
fn decoded(value: &str) -> Option<String> {
    let value = value.trim();
    let quoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let bytes = quoted.unwrap_or(value).as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                text.push((high * 16 + low) as u8);
                at += 3;
            }
            (b'\\', ..) if quoted.is_some() && at + 1 < bytes.len() => {
                text.push(bytes[at + 1]);
                at += 2;
            }
            _ => {
                text.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(text).ok()
}

fn shallow(body: &[u8]) -> Result<(), InvalidEvent> {
    if is_shallow(body) { Ok(()) } else { Err(InvalidEvent::Syntax(too_deep())) }
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
    Ok(CloudEvent { kind: needed("type")?, subject, source_id: source_id(&source, &id), data, broadcast })
}

/// The producer and its id as one name. A producer's own `#` is spelled otherwise, so that no two pairs have one name.
fn source_id(source: &str, id: &str) -> String {
    format!("{}#{id}", source.replace('%', "%25").replace('#', "%23"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(mode(&headers), Ok(Some(Mode::Binary)));
        assert_eq!(binary(&headers, br#"{"size":3}"#).unwrap(), event);
        assert_eq!(binary(&headers, b"").unwrap().data, Json::null());
    }

    fn headers(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let whole = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t")];
        whole.iter().chain(pairs).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn attributes_in_headers_are_decoded() {
        for (value, subject) in [
            ("a%20b", "a b"),
            ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
            ("\"quoted \\\" text\"", "quoted \" text"),
            ("100%", "100%"),
            ("5%zz", "5%zz"),
        ] {
            let event = binary(&headers(&[("ce-subject", value)]), b"").unwrap();
            assert_eq!(event.subject.as_deref(), Some(subject), "{value}");
        }
        assert_eq!(binary(&headers(&[("ce-subject", "%FF")]), b""), Err(InvalidEvent::Encoding("subject")));
        assert_eq!(binary(&headers(&[("ce-type", "a%00b")]), b""), Err(InvalidEvent::Nul("type")));
    }

    #[test]
    fn two_events_of_two_producers_are_never_one() {
        let of = |source, id| binary(&headers(&[("ce-source", source), ("ce-id", id)]), b"").unwrap().source_id;
        assert_ne!(of("a#b", "c"), of("a", "b#c"));
        assert_ne!(of("a#", "c"), of("a%2523", "c"));
        assert_eq!(of("a", "c"), "a#c");
    }

    #[test]
    fn the_mode_is_told_by_the_media_type_whatever_its_case() {
        let of = |kind: &str| mode(&BTreeMap::from([("content-type".to_owned(), kind.to_owned())]));
        assert_eq!(of("Application/CloudEvents+JSON; charset=UTF-8"), Ok(Some(Mode::Structured)));
        assert_eq!(of("application/json"), Ok(None));
        for kind in ["application/cloudevents-batch+json", "application/cloudevents+xml", "Application/CloudEvents"] {
            assert_eq!(of(kind), Err(InvalidEvent::Mode(kind.to_ascii_lowercase())));
        }
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

    /// What holds a number exactly is the text alone; whoever reads it as a value refuses one that would be rounded.
    #[test]
    fn the_data_is_the_text_that_was_sent_in_both_modes() {
        let data = r#"{"n": 123456789012345678901234567890}"#;
        let whole = WHOLE.replace(r#"{"size":3}"#, data);
        assert_eq!(structured(whole.as_bytes()).unwrap().data.as_str(), data);
        assert_eq!(
            binary(&headers(&[("content-type", "application/json")]), data.as_bytes()).unwrap().data.as_str(),
            data
        );
    }
}
