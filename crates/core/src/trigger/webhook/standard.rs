//! Standard Webhooks 1.0: HMAC-SHA256 over `{id}.{timestamp}.{body}`, both ways. Secrets look like `whsec_…`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Delivery, Headers, IdPlace, ReadError, SignatureError, event_of, json, key_of, mac, text_of};
use crate::keys::TriggerKey;
use crate::time::Timestamp;

pub const ID: &str = "webhook-id";
pub const TIMESTAMP: &str = "webhook-timestamp";
pub const SIGNATURE: &str = "webhook-signature";
const PREFIX: &str = "whsec_";
/// Signatures of one request: one per active secret of the sender.
const SIGNATURES_MAX: usize = 16;
const SECRET_BYTES_MIN: usize = 16;

/// The key inside a secret. Interlock's have 32 random bytes; other senders' have 24 to 64, and a few have 16.
pub fn key_of_secret(secret: &str) -> Option<Vec<u8>> {
    let encoded = secret.strip_prefix(PREFIX).unwrap_or(secret);
    BASE64.decode(encoded).ok().filter(|key| key.len() >= SECRET_BYTES_MIN)
}

/// A secret that holds these random bytes.
pub fn secret_of_key(key: &[u8; 32]) -> String {
    format!("{PREFIX}{}", BASE64.encode(key))
}

/// The value of the signature header: one signature per active secret, so that receivers can rotate their secret.
pub fn sign<S: AsRef<[u8]>>(keys: &[S], id: &str, at: Timestamp, body: &[u8]) -> String {
    let seconds = (at.0 / 1_000).to_string();
    let parts: [&[u8]; 5] = [id.as_bytes(), b".", seconds.as_bytes(), b".", body];
    let one = |key: &S| format!("v1,{}", BASE64.encode(mac::sign(key.as_ref(), &parts)));
    keys.iter().map(one).collect::<Vec<_>>().join(" ")
}

pub fn verify<S: AsRef<[u8]>>(
    keys: &[S],
    headers: &impl Headers,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let id = headers.value(ID).ok_or(SignatureError::Missing(ID))?;
    let seconds = headers.value(TIMESTAMP).ok_or(SignatureError::Missing(TIMESTAMP))?;
    let given = headers.value(SIGNATURE).ok_or(SignatureError::Missing(SIGNATURE))?;
    let parts: [&[u8]; 5] = [id.as_bytes(), b".", seconds.as_bytes(), b".", body];
    let mut verdict = Err(SignatureError::Malformed);
    for signature in given.split(' ').take(SIGNATURES_MAX) {
        // Other versions (`v1a` is Ed25519) may stand beside version 1.
        let Some(signature) = signature.strip_prefix("v1,").and_then(|text| BASE64.decode(text).ok()) else { continue };
        verdict = mac::verify(keys, &parts, &signature);
        if verdict.is_ok() {
            break;
        }
    }
    verdict?;
    super::slack::fresh(seconds, now)
}

pub fn read(endpoint: &str, headers: &impl Headers, body: &[u8]) -> Result<Delivery, ReadError> {
    let id = headers.value(ID).ok_or(ReadError::MissingHeader(ID))?;
    let payload = json(body)?;
    let (key, event) = (key_of(TriggerKey::Webhook { endpoint, id })?, event_of(text_of(&payload, &["type"]))?);
    Ok(Delivery { key, id: IdPlace::Proven, event, payload, fingerprint: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The example that the reference libraries test themselves with.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const MESSAGE: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: Timestamp = Timestamp(1_614_265_330_000);
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNED: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn headers(signature: &str) -> BTreeMap<String, String> {
        let pairs = [(ID, MESSAGE), (TIMESTAMP, "1614265330"), (SIGNATURE, signature)];
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn standard_webhooks_published_vector() {
        let key = key_of_secret(SECRET).unwrap();
        assert_eq!(sign(&[&key], MESSAGE, AT, BODY), SIGNED);
        let check = |signature: &str, now| verify(&[&key], &headers(signature), BODY, now);
        assert_eq!(check(SIGNED, AT), Ok(()));
        assert_eq!(check(&format!("v1a,abc v1,AAAA {SIGNED}"), AT), Ok(()));
        assert_eq!(check("v1,AAAA", AT), Err(SignatureError::Mismatch));
        assert_eq!(check("v2,AAAA", AT), Err(SignatureError::Malformed));
        assert_eq!(check(SIGNED, Timestamp(AT.0 + 301_000)), Err(SignatureError::Stale));
        assert_eq!(check(SIGNED, Timestamp(AT.0 - 301_000)), Err(SignatureError::Stale));
        assert_eq!(verify(&[&key], &headers(SIGNED), b"{}", AT), Err(SignatureError::Mismatch));
    }

    #[test]
    fn the_id_is_signed_and_a_name_holds_no_nul() {
        assert_eq!(read("whs_1", &headers(SIGNED), BODY).unwrap().id, IdPlace::Proven);
        let unnamed = read("whs_1", &headers(SIGNED), br#"{"type":"a\u0000b"}"#);
        assert_eq!(unnamed, Err(ReadError::Nul("the event's name")));
    }

    #[test]
    fn while_a_secret_is_replaced_either_verifies() {
        let (old, new) = ([1u8; 32], [2u8; 32]);
        let both = sign(&[old, new], MESSAGE, AT, BODY);
        assert_eq!(verify(&[old], &headers(&both), BODY, AT), Ok(()));
        assert_eq!(verify(&[new], &headers(&both), BODY, AT), Ok(()));
        assert_eq!(key_of_secret(&secret_of_key(&old)), Some(old.to_vec()));
        assert_eq!((key_of_secret("whsec_"), key_of_secret("whsec_!")), (None, None));
    }
}
