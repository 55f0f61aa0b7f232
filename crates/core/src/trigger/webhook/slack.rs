//! Slack: `v0=` HMAC over `v0:{timestamp}:{body}`, no older than five minutes. Slash commands come as forms.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Delivery, Headers, IdPlace, ReadError, SignatureError, TOLERANCE, event_of, key_of, mac};
use crate::json::NUL;
use crate::keys::TriggerKey;
use crate::text::visible::visible;
use crate::time::Timestamp;

pub const SIGNATURE: &str = "x-slack-signature";
pub const TIMESTAMP: &str = "x-slack-request-timestamp";
/// Fields of one form.
const FIELDS_MAX: usize = 64;

pub fn verify<S: AsRef<[u8]>>(
    secrets: &[S],
    headers: &impl Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let timestamp = headers.value(TIMESTAMP).ok_or(SignatureError::Missing(TIMESTAMP))?;
    let given = headers.value(SIGNATURE).ok_or(SignatureError::Missing(SIGNATURE))?;
    let signature = given.strip_prefix("v0=").and_then(mac::from_hex).ok_or(SignatureError::Malformed)?;
    mac::verify(secrets, &[b"v0:", timestamp.as_bytes(), b":", body], &signature)?;
    fresh(timestamp, now)
}

/// Whether a signed instant, in seconds, is close enough to now.
pub(super) fn fresh(seconds: &str, now: Timestamp) -> Result<(), SignatureError> {
    let at: i64 = seconds.parse().map_err(|_| SignatureError::Malformed)?;
    let apart = now.0.abs_diff(at.saturating_mul(1_000));
    if apart > TOLERANCE.0 { Err(SignatureError::Stale) } else { Ok(()) }
}

/// What Slack may send to a command's address.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Slack looks whether the certificate is good: answer 200, do nothing.
    SslCheck,
    /// Slack looks whether the address belongs to this app: answer with the challenge.
    UrlVerification {
        challenge: String,
    },
    Delivery(Delivery),
}

pub fn read(headers: &impl Headers, body: &[u8]) -> Result<Request, ReadError> {
    if headers.value("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return read_event(body);
    }
    let fields = form(body)?;
    if fields.get("ssl_check").is_some_and(|value| value == "1") {
        return Ok(Request::SslCheck);
    }
    let field = |name: &'static str| fields.get(name).cloned().ok_or(ReadError::MissingField(name));
    let (team, trigger, event) = (field("team_id")?, field("trigger_id")?, field("command")?);
    let key = key_of(TriggerKey::Slack { team: &team, trigger: &trigger })?;
    // The token is a shared secret of Slack's older scheme; runs keep their inputs for ever.
    let shown = fields.into_iter().filter(|(name, _)| name != "token");
    let payload = Value::Object(shown.map(|(name, value)| (name, Value::String(value))).collect());
    Ok(Request::Delivery(Delivery { key, id: IdPlace::Proven, event, payload, fingerprint: None }))
}

/// Slack repeats an event up to three times; its `event_id` stays.
fn read_event(body: &[u8]) -> Result<Request, ReadError> {
    let mut payload = super::json(body)?;
    if payload["type"] == "url_verification" {
        let challenge = super::text_of(&payload, &["challenge"]).ok_or(ReadError::MissingField("challenge"))?;
        return Ok(Request::UrlVerification { challenge });
    }
    let team = super::text_of(&payload, &["team_id"]).ok_or(ReadError::MissingField("team_id"))?;
    let id = super::text_of(&payload, &["event_id"]).ok_or(ReadError::MissingField("event_id"))?;
    let event = super::text_of(&payload, &["event", "type"]).ok_or(ReadError::MissingField("event.type"))?;
    let event = event_of(Some(event))?;
    if let Value::Object(fields) = &mut payload {
        fields.remove("token");
    }
    let key = key_of(TriggerKey::Slack { team: &team, trigger: &id })?;
    Ok(Request::Delivery(Delivery { key, id: IdPlace::Proven, event, payload, fingerprint: None }))
}

/// `application/x-www-form-urlencoded`; the last of equal names counts. As in every form, no field holds a NUL.
pub(super) fn form(body: &[u8]) -> Result<BTreeMap<String, String>, ReadError> {
    let text = std::str::from_utf8(body).map_err(|error| ReadError::Body(error.to_string()))?;
    let pairs: Vec<&str> = text.split('&').filter(|pair| !pair.is_empty()).collect();
    if pairs.len() > FIELDS_MAX {
        return Err(ReadError::Body(format!("more than {FIELDS_MAX} fields")));
    }
    pairs.into_iter().map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(decode_pair).collect()
}

fn decode_pair((name, value): (&str, &str)) -> Result<(String, String), ReadError> {
    let (name, value) = (decode(name)?, decode(value)?);
    if name.contains(NUL) || value.contains(NUL) {
        return Err(ReadError::Body(format!("the field `{}` holds a NUL character", visible(&name))));
    }
    Ok((name, value))
}

fn decode(text: &str) -> Result<String, ReadError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next().unwrap_or(b'?'), rest.next().unwrap_or(b'?')];
                let decoded = std::str::from_utf8(&digits).ok().and_then(mac::from_hex);
                bytes.extend(decoded.ok_or_else(|| ReadError::Body("a `%` without two digits".into()))?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).map_err(|error| ReadError::Body(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's own documentation ("Verifying requests from Slack").
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow\
        &channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner\
        &command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J\
        %2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const AT: i64 = 1_531_420_618;

    fn headers(timestamp: &str, signature: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(TIMESTAMP.into(), timestamp.into()), (SIGNATURE.into(), signature.into())])
    }

    #[test]
    fn slack_published_vector() {
        let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
        let signed = headers("1531420618", signature);
        let at = |seconds: i64| Timestamp((AT + seconds) * 1_000);
        let check = |now| verify(&[SECRET], &signed, BODY.as_bytes(), now);
        assert_eq!(check(at(0)), Ok(()));
        assert_eq!((check(at(300)), check(at(-300))), (Ok(()), Ok(())));
        assert_eq!((check(at(301)), check(at(-301))), (Err(SignatureError::Stale), Err(SignatureError::Stale)));
        let elsewhen = headers("1531420619", signature);
        assert_eq!(verify(&[SECRET], &elsewhen, BODY.as_bytes(), at(0)), Err(SignatureError::Mismatch));
    }

    #[test]
    fn a_command_is_read_without_its_token() {
        let Request::Delivery(delivery) = read(&BTreeMap::new(), BODY.as_bytes()).unwrap() else { panic!() };
        assert_eq!(delivery.key, "slack:T1DC2JH3J:398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c");
        assert_eq!(delivery.event, "/webhook-collect");
        assert_eq!((&delivery.payload["user_name"], &delivery.payload["token"]), (&"roadrunner".into(), &Value::Null));
    }

    #[test]
    fn checks_of_slack_are_no_deliveries() {
        assert_eq!(read(&BTreeMap::new(), b"ssl_check=1&token=x").unwrap(), Request::SslCheck);
        let json = BTreeMap::from([("content-type".to_owned(), "application/json; charset=utf-8".to_owned())]);
        let body = br#"{"type":"url_verification","token":"t","challenge":"c"}"#;
        assert_eq!(read(&json, body).unwrap(), Request::UrlVerification { challenge: "c".into() });
        let event =
            br#"{"type":"event_callback","token":"t","team_id":"T","event_id":"Ev1","event":{"type":"message"}}"#;
        let Request::Delivery(delivery) = read(&json, event).unwrap() else { panic!() };
        assert_eq!((delivery.key.as_str(), &delivery.payload["token"]), ("slack:T:Ev1", &Value::Null));
        let unnamed = br#"{"type":"event_callback","team_id":"T","event_id":"Ev1","event":{"type":"a\u0000b"}}"#;
        assert_eq!(read(&json, unnamed), Err(ReadError::Nul("the event's name")));
    }

    #[test]
    fn a_form_that_is_none_is_refused() {
        assert_eq!(read(&BTreeMap::new(), b"command=/x"), Err(ReadError::MissingField("team_id")));
        for body in [&b"a=%"[..], b"a=%4", b"a=%zz", b"a=%ff", b"\xff", b"a=1%00", b"a=\0", b"%00=1"] {
            assert!(matches!(read(&BTreeMap::new(), body), Err(ReadError::Body(_))), "{body:?}");
        }
        assert_eq!(
            form(b"a=1+2%2B3&b&&a=4").unwrap(),
            BTreeMap::from([("a".into(), "4".into()), ("b".into(), String::new())])
        );
    }
}
