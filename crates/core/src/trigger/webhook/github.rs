//! GitHub: `X-Hub-Signature-256` over the raw body, one delivery per `X-GitHub-Delivery`.

use std::collections::BTreeMap;

use super::{Delivery, Headers, IdPlace, ReadError, SignatureError, json, key_of, mac, text_of};
use crate::keys::TriggerKey;
use crate::limits;

pub const SIGNATURE: &str = "x-hub-signature-256";
pub const DELIVERY: &str = "x-github-delivery";
pub const EVENT: &str = "x-github-event";

pub fn verify<S: AsRef<[u8]>>(secrets: &[S], headers: &impl Headers, body: &[u8]) -> Result<(), SignatureError> {
    let given = headers.value(SIGNATURE).ok_or(SignatureError::Missing(SIGNATURE))?;
    let signature = given.strip_prefix("sha256=").and_then(mac::from_hex).ok_or(SignatureError::Malformed)?;
    mac::verify(secrets, &[body], &signature)
}

/// `secondary`: whether the same pull request, event, action and head within seconds counts as one delivery.
pub fn read(headers: &impl Headers, body: &[u8], secondary: bool) -> Result<Delivery, ReadError> {
    let delivery = headers.value(DELIVERY).ok_or(ReadError::MissingHeader(DELIVERY))?;
    let event = headers.value(EVENT).ok_or(ReadError::MissingHeader(EVENT))?;
    // GitHub can also be told to send a form with the JSON in one field.
    let form = headers.value("content-type").is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let payload = if form {
        let field = super::slack::form(body)?.remove("payload").ok_or(ReadError::MissingField("payload"))?;
        json(field.as_bytes())?
    } else {
        json(body)?
    };
    let fingerprint = if secondary { fingerprint(event, &payload) } else { None };
    let key = key_of(TriggerKey::GitHub { delivery })?;
    Ok(Delivery { key, id: IdPlace::Header, event: event.to_owned(), payload, fingerprint })
}

/// What a run that the event starts is found by: `repo`, and for a pull request `pr`, `pr_url` and `head_sha`.
pub fn labels(payload: &serde_json::Value) -> BTreeMap<String, String> {
    let paths: [(&str, &[&[&str]]); 4] = [
        ("repo", &[&["repository", "full_name"]]),
        ("pr", &[&["pull_request", "number"]]),
        ("pr_url", &[&["pull_request", "html_url"]]),
        (
            "head_sha",
            &[&["pull_request", "head", "sha"], &["check_run", "head_sha"], &["check_suite", "head_sha"], &["after"]],
        ),
    ];
    let found = paths.into_iter().filter_map(|(name, paths)| {
        let text = paths.iter().find_map(|path| text_of(payload, path))?;
        (text.len() <= limits::NAME_BYTES_MAX).then(|| (name.to_owned(), text))
    });
    found.collect()
}

/// Only what is about a pull request has one.
fn fingerprint(event: &str, payload: &serde_json::Value) -> Option<String> {
    let number = text_of(payload, &["pull_request", "number"])?;
    let head = text_of(payload, &["pull_request", "head", "sha"])?;
    let repository = text_of(payload, &["repository", "id"])
        .or_else(|| text_of(payload, &["repository", "full_name"]))
        .unwrap_or_default();
    let action = text_of(payload, &["action"]).unwrap_or_default();
    Some(format!("{repository}\n{number}\n{event}\n{action}\n{head}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_run_is_found_by_its_repository_and_pull_request() {
        let payload = serde_json::json!({
            "repository": { "full_name": "acme/shop" },
            "pull_request": { "number": 7, "html_url": "https://example.org/7", "head": { "sha": "abc" } },
        });
        let named =
            |labels: BTreeMap<String, String>| labels.into_iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>();
        assert_eq!(named(labels(&payload)), ["head_sha=abc", "pr=7", "pr_url=https://example.org/7", "repo=acme/shop"]);
        let push = serde_json::json!({ "repository": { "full_name": "acme/shop" }, "after": "def" });
        assert_eq!(named(labels(&push)), ["head_sha=def", "repo=acme/shop"]);
        assert!(labels(&serde_json::json!({ "repository": { "full_name": "x".repeat(10_000) } })).is_empty());
    }

    /// The example of GitHub's own documentation ("Validating webhook deliveries").
    #[test]
    fn github_published_vector() {
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let signed = headers(&[(SIGNATURE, signature)]);
        assert_eq!(verify(&["It's a Secret to Everybody"], &signed, b"Hello, World!"), Ok(()));
        assert_eq!(verify(&["old", "It's a Secret to Everybody"], &signed, b"Hello, World!"), Ok(()));
        assert_eq!(verify(&["It's a Secret to Everybody"], &signed, b"Hello, World"), Err(SignatureError::Mismatch));
        assert_eq!(verify(&["another"], &signed, b"Hello, World!"), Err(SignatureError::Mismatch));
        assert_eq!(verify::<&str>(&[], &signed, b"Hello, World!"), Err(SignatureError::Mismatch));
    }

    #[test]
    fn a_signature_that_is_none_is_refused() {
        for (given, expected) in [
            (None, SignatureError::Missing(SIGNATURE)),
            (Some(""), SignatureError::Malformed),
            (Some("sha1=757107ea"), SignatureError::Malformed),
            (Some("sha256=75710"), SignatureError::Malformed),
            (Some("sha256=zz"), SignatureError::Malformed),
            (Some("sha256="), SignatureError::Mismatch),
            (Some("sha256=757107ea"), SignatureError::Mismatch),
        ] {
            let pairs: Vec<_> = given.map(|value| (SIGNATURE, value)).into_iter().collect();
            assert_eq!(verify(&["s"], &headers(&pairs), b""), Err(expected), "{given:?}");
        }
    }

    #[test]
    fn a_pull_request_has_a_fingerprint_and_a_push_has_none() {
        let about = headers(&[(DELIVERY, "d-1"), (EVENT, "pull_request")]);
        let body = br#"{"action":"opened","repository":{"id":7},"pull_request":{"number":3,"head":{"sha":"abc"}}}"#;
        let delivery = read(&about, body, true).unwrap();
        assert_eq!((delivery.key.as_str(), delivery.event.as_str()), ("github:d-1", "pull_request"));
        assert_eq!(delivery.fingerprint.as_deref(), Some("7\n3\npull_request\nopened\nabc"));
        assert_eq!(delivery.id, IdPlace::Header, "GitHub signs the body alone");
        assert_eq!(read(&about, body, false).unwrap().fingerprint, None);
        let push = headers(&[(DELIVERY, "d-2"), (EVENT, "push")]);
        assert_eq!(read(&push, b"{}", true).unwrap().fingerprint, None);
        assert_eq!(read(&headers(&[(EVENT, "push")]), b"{}", true), Err(ReadError::MissingHeader(DELIVERY)));
    }

    #[test]
    fn the_payload_may_come_as_a_form() {
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let about = headers(&[(DELIVERY, "d"), (EVENT, "ping"), kind]);
        assert_eq!(read(&about, b"payload=%7B%22zen%22%3A1%7D", true).unwrap().payload["zen"], 1);
        assert!(read(&about, b"payload=%7B%22zen%22%3A18446744073709551616%7D", true).is_err(), "it would be rounded");
    }
}
