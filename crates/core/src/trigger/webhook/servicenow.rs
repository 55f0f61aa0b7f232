//! ServiceNow: a secret per endpoint, sent the ways its outbound REST messages can: a header, or basic authentication.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Delivery, Headers, IdPlace, ReadError, SignatureError, event_of, json, key_of, mac, text_of};
use crate::keys::TriggerKey;

pub const SECRET: &str = "x-interlock-secret";
const AUTHORIZATION: &str = "authorization";

pub fn verify<S: AsRef<[u8]>>(secrets: &[S], headers: &impl Headers) -> Result<(), SignatureError> {
    if let Some(secret) = headers.value(SECRET) {
        return mac::same(secrets, secret.trim().as_bytes());
    }
    let given = headers.value(AUTHORIZATION).ok_or(SignatureError::Missing(SECRET))?;
    let (scheme, value) = given.split_once(' ').ok_or(SignatureError::Malformed)?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return mac::same(secrets, value.trim().as_bytes());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(SignatureError::Malformed);
    }
    let pair = BASE64.decode(value.trim()).map_err(|_| SignatureError::Malformed)?;
    let colon = pair.iter().position(|byte| *byte == b':').ok_or(SignatureError::Malformed)?;
    mac::same(secrets, &pair[colon + 1..])
}

/// A record is one delivery per `sys_mod_count`, which rises with every change of it.
pub fn read(endpoint: &str, body: &[u8]) -> Result<Delivery, ReadError> {
    let payload = json(body)?;
    let field = |name: &'static str| {
        let found = text_of(&payload, &[name]).or_else(|| text_of(&payload, &["record", name]));
        found.filter(|text| !text.is_empty())
    };
    let sys_id = field("sys_id").ok_or(ReadError::MissingField("sys_id"))?;
    let count = field("sys_mod_count").and_then(|text| text.parse().ok());
    let sys_mod_count: u64 = count.ok_or(ReadError::MissingField("sys_mod_count"))?;
    let instance = field("instance").unwrap_or_else(|| endpoint.to_owned());
    let event = event_of(field("event").or_else(|| field("sys_class_name")).or_else(|| field("table")))?;
    let key = key_of(TriggerKey::ServiceNow { instance: &instance, sys_id: &sys_id, sys_mod_count })?;
    Ok(Delivery { key, id: IdPlace::Proven, event, payload, fingerprint: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_secret_comes_in_a_header_or_as_a_password() {
        let check = |name: &str, value: &str| {
            verify(&["old-one", "s3cret:x"], &BTreeMap::from([(name.to_owned(), value.to_owned())]))
        };
        assert_eq!(check(SECRET, "s3cret:x"), Ok(()));
        assert_eq!(check(SECRET, "old-one"), Ok(()));
        assert_eq!(check(AUTHORIZATION, "Bearer s3cret:x"), Ok(()));
        assert_eq!(check(AUTHORIZATION, &format!("Basic {}", BASE64.encode("sn:s3cret:x"))), Ok(()));
        assert_eq!(check(SECRET, "s3cret"), Err(SignatureError::Mismatch));
        assert_eq!(check(SECRET, ""), Err(SignatureError::Mismatch));
        assert_eq!(check(AUTHORIZATION, "Digest x"), Err(SignatureError::Malformed));
        assert_eq!(check(AUTHORIZATION, "Basic !"), Err(SignatureError::Malformed));
        assert_eq!(check("x", "y"), Err(SignatureError::Missing(SECRET)));
    }

    #[test]
    fn a_change_of_a_record_is_a_delivery() {
        let flat = br#"{"instance":"dev1","sys_id":"abc","sys_mod_count":"4","event":"incident.updated"}"#;
        let delivery = read("whs_1", flat).unwrap();
        assert_eq!((delivery.key.as_str(), delivery.event.as_str()), ("servicenow:dev1:abc:4", "incident.updated"));
        let nested = br#"{"table":"incident","record":{"sys_id":"abc","sys_mod_count":5}}"#;
        assert_eq!(read("whs_1", nested).unwrap().key, "servicenow:whs_1:abc:5");
        assert_eq!(read("whs_1", br#"{"sys_id":"abc"}"#), Err(ReadError::MissingField("sys_mod_count")));
        let unnamed = br#"{"sys_id":"abc","sys_mod_count":5,"table":"incident\u0000"}"#;
        assert_eq!(read("whs_1", unnamed), Err(ReadError::Nul("the event's name")));
    }
}
