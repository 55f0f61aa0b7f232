//! DSSE: a payload, its type, and signatures over both.

use interlock_core::text::json_words::json_error;
use serde::{Deserialize, Serialize};

use crate::encoding::{base64, from_base64};
use crate::key::{PublicKey, SigningKey};
use crate::limits::{BUNDLE_BYTES_MAX, SIGNATURES_MAX};

/// in-toto's type of payload.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    pub payload: String,
    pub payload_type: String,
    pub signatures: Vec<EnvelopeSignature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeSignature {
    #[serde(default)]
    pub keyid: String,
    pub sig: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    #[error("this is no DSSE envelope: {0}")]
    Malformed(String),
    #[error("the payload is of type `{0}`, not `{PAYLOAD_TYPE}`")]
    OtherType(String),
    #[error("no signature on the envelope is by this key: it was made by another server, or altered")]
    NotSigned,
    #[error("none of the first {SIGNATURES_MAX} signatures on the envelope is by this key, and no more are looked at")]
    TooManySignatures,
}

/// What is signed: type and payload with their lengths, so that no part passes for another.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

/// Signs a payload. The same payload and key make the same bytes.
pub fn sign(payload: &[u8], key: &SigningKey) -> Envelope {
    let signature = key.sign(&pre_authentication(PAYLOAD_TYPE, payload));
    let signature = EnvelopeSignature { keyid: key.public().id().to_string(), sig: base64(&signature) };
    Envelope { payload: base64(payload), payload_type: PAYLOAD_TYPE.to_owned(), signatures: vec![signature] }
}

/// The payload, if the key has signed it. A key id is a hint, and is not believed.
pub fn open(envelope: &str, key: &PublicKey) -> Result<Vec<u8>, EnvelopeError> {
    let envelope = read(envelope)?;
    let payload = payload(&envelope)?;
    let message = pre_authentication(&envelope.payload_type, &payload);
    let is_signed = |signature: &EnvelopeSignature| {
        from_base64(&signature.sig).is_some_and(|signature| key.verifies(&message, &signature))
    };
    if !envelope.signatures.iter().take(SIGNATURES_MAX).any(is_signed) {
        return Err(match envelope.signatures.len() {
            ..=SIGNATURES_MAX => EnvelopeError::NotSigned,
            _ => EnvelopeError::TooManySignatures,
        });
    }
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(EnvelopeError::OtherType(envelope.payload_type));
    }
    Ok(payload)
}

/// The payload without a check of its signature: to show it, not to trust it.
pub fn payload_unverified(envelope: &str) -> Result<Vec<u8>, EnvelopeError> {
    payload(&read(envelope)?)
}

fn read(envelope: &str) -> Result<Envelope, EnvelopeError> {
    if envelope.len() > BUNDLE_BYTES_MAX {
        return Err(EnvelopeError::Malformed(format!("it is longer than {BUNDLE_BYTES_MAX} bytes")));
    }
    serde_json::from_str(envelope).map_err(|error| EnvelopeError::Malformed(json_error(&error)))
}

fn payload(envelope: &Envelope) -> Result<Vec<u8>, EnvelopeError> {
    from_base64(&envelope.payload).ok_or_else(|| EnvelopeError::Malformed("its payload is not base64".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the DSSE protocol.
    #[test]
    fn the_specifications_example() {
        let bytes = pre_authentication("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn an_envelope_opens_for_its_key_and_as_it_was_made() {
        let key = SigningKey::from_seed("k", &[5; 32]);
        let envelope = sign(b"{}", &key);
        let text = serde_json::to_string(&envelope).unwrap();
        assert_eq!(open(&text, key.public()), Ok(b"{}".to_vec()));
        let other = SigningKey::from_seed("k", &[6; 32]);
        assert_eq!(open(&text, other.public()), Err(EnvelopeError::NotSigned));
        for changed in [
            Envelope { payload: base64(b"[]"), ..envelope.clone() },
            Envelope { payload_type: "text/plain".into(), ..envelope.clone() },
            Envelope { signatures: Vec::new(), ..envelope.clone() },
        ] {
            assert_eq!(open(&serde_json::to_string(&changed).unwrap(), key.public()), Err(EnvelopeError::NotSigned));
        }
        assert!(matches!(open("{}", key.public()), Err(EnvelopeError::Malformed(_))));
        let strange = EnvelopeSignature { keyid: String::new(), sig: base64(&[0; 64]) };
        let signed = |before: usize| {
            let signatures = vec![strange.clone(); before].into_iter().chain(envelope.signatures.clone()).collect();
            let envelope = Envelope { signatures, ..envelope.clone() };
            open(&serde_json::to_string(&envelope).unwrap(), key.public())
        };
        assert_eq!(signed(SIGNATURES_MAX - 1), Ok(b"{}".to_vec()), "signatures of others are passed over");
        assert_eq!(signed(SIGNATURES_MAX), Err(EnvelopeError::TooManySignatures));
        assert_eq!(sign(b"{}", &key), envelope, "the same bytes again");
    }
}
