//! Any sender that can sign: HMAC-SHA256 of the raw body in a header of the endpoint's choice, as hexadecimal digits
//! (with or without `sha256=`) or base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use serde_json::Value;

use super::{Delivery, Headers, IdPlace, ReadError, SignatureError, event_of, key_of, mac, text_of};
use crate::json::Hash;
use crate::keys::TriggerKey;

pub const SIGNATURE: &str = "x-signature-256";
/// Where the delivery's own id may stand, in this order.
const IDS: &[&str] = &["idempotency-key", "x-delivery-id", "x-request-id", "webhook-id", "ce-id"];
const EVENTS: &[&str] = &["x-event-type", "ce-type"];

pub fn verify<S: AsRef<[u8]>>(
    secrets: &[S],
    header: Option<&str>,
    headers: &impl Headers,
    body: &[u8],
) -> Result<(), SignatureError> {
    let given = headers.value(header.unwrap_or(SIGNATURE)).ok_or(SignatureError::Missing(SIGNATURE))?.trim();
    let digits = given.strip_prefix("sha256=").unwrap_or(given);
    let signature = mac::from_hex(digits).or_else(|| BASE64.decode(digits).ok()).ok_or(SignatureError::Malformed)?;
    mac::verify(secrets, &[body], &signature)
}

/// Without an id of the sender's, equal bodies are one delivery: better than two runs for a repeat.
pub fn read(endpoint: &str, headers: &impl Headers, body: &[u8]) -> Result<Delivery, ReadError> {
    let payload = super::json(body)?;
    let (place, id) = match IDS.iter().find_map(|name| headers.value(name).filter(|id| !id.is_empty())) {
        Some(id) => (IdPlace::Header, id.to_owned()),
        None => (IdPlace::Body, id_in(&payload).unwrap_or_else(|| Hash::of(body).to_string())),
    };
    let named = EVENTS.iter().find_map(|name| headers.value(name)).map(str::to_owned);
    let event = named.or_else(|| text_of(&payload, &["type"])).or_else(|| text_of(&payload, &["event"]));
    let (key, event) = (key_of(TriggerKey::Webhook { endpoint, id: &id })?, event_of(event)?);
    Ok(Delivery { key, id: place, event, payload, fingerprint: None })
}

/// What a body calls itself. An empty id is none: it would make all of a sender's bodies one.
pub fn id_in(payload: &Value) -> Option<String> {
    text_of(payload, &["id"]).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// RFC 4231, test case 2.
    #[test]
    fn rfc_4231_vector_in_every_spelling() {
        let digits = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        let base64 = BASE64.encode(mac::from_hex(digits).unwrap());
        for given in [digits.to_owned(), format!("sha256={digits}"), base64] {
            let headers = BTreeMap::from([(SIGNATURE.to_owned(), given.clone())]);
            assert_eq!(verify(&["Jefe"], None, &headers, b"what do ya want for nothing?"), Ok(()), "{given}");
            let headers = BTreeMap::from([("x-mine".to_owned(), given)]);
            assert_eq!(verify(&["Jefe"], Some("x-mine"), &headers, b"what do ya want for nothing?"), Ok(()));
            assert_eq!(verify(&["Jefe"], Some("x-mine"), &headers, b"?"), Err(SignatureError::Mismatch));
        }
    }

    #[test]
    fn the_id_is_the_senders_else_the_bodys() {
        let headers = BTreeMap::from([("x-delivery-id".to_owned(), "d1".to_owned())]);
        assert_eq!(read("whs_1", &headers, b"{}").unwrap().key, "webhook:whs_1:d1");
        let plain = BTreeMap::new();
        assert_eq!(read("whs_1", &plain, br#"{"id":7,"type":"t"}"#).unwrap().key, "webhook:whs_1:7");
        let (one, two) = (read("whs_1", &plain, b"{}").unwrap(), read("whs_1", &plain, b"[]").unwrap());
        assert_eq!(one, read("whs_1", &plain, b"{}").unwrap());
        assert_ne!(one.key, two.key);
    }

    #[test]
    fn an_empty_id_is_none() {
        let key = |id: Option<&str>, body: &[u8]| {
            let header = id.map(|id| ("x-delivery-id".to_owned(), id.to_owned()));
            read("whs_1", &header.into_iter().collect::<BTreeMap<_, _>>(), body).unwrap().key
        };
        assert_ne!(key(None, br#"{"id":"","n":1}"#), key(None, br#"{"id":"","n":2}"#));
        assert_ne!(key(Some(""), br#"{"n":1}"#), key(Some(""), br#"{"n":2}"#));
        assert_eq!(key(Some(""), br#"{"id":7}"#), "webhook:whs_1:7");
    }

    #[test]
    fn an_id_in_a_header_is_told_from_one_that_is_signed() {
        let place = |id: Option<&str>, body: &[u8]| {
            let header = id.map(|id| ("x-delivery-id".to_owned(), id.to_owned()));
            let headers: BTreeMap<String, String> = header.into_iter().collect();
            read("whs_1", &headers, body).unwrap().id
        };
        assert_eq!(place(Some("d1"), br#"{"id":7}"#), IdPlace::Header);
        assert_eq!(place(None, br#"{"id":7}"#), IdPlace::Body);
        assert_eq!(place(None, b"{}"), IdPlace::Body);
    }

    #[test]
    fn what_would_be_stored_as_another_is_refused() {
        let refused = |body: &str| read("whs_1", &BTreeMap::new(), body.as_bytes()).unwrap_err().to_string();
        for body in [r#"{"type":"a\u0000b"}"#, r#"{"event":"a\u0000b"}"#] {
            assert!(refused(body).contains("the event's name holds a NUL"), "{body}");
        }
        assert!(refused(r#"{"id":"a\u0000b"}"#).contains("control characters"));
        let rounded = refused(r#"{"order":{"items":[1,18446744073709551617]}}"#);
        assert!(rounded.contains("`order.items[1]`: 18446744073709551617 has more than 64 bits"), "{rounded}");
        assert!(read("whs_1", &BTreeMap::new(), br#"{"note":"a\u0000b","n":18446744073709551615}"#).is_ok());
    }
}
