//! HMAC-SHA256, compared in constant time.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::SignatureError;

fn mac(secret: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    for part in parts {
        mac.update(part);
    }
    mac
}

pub fn sign(secret: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    mac(secret, parts).finalize().into_bytes().into()
}

/// Whether one of the secrets made the signature. All are tried, so the time tells nothing about which.
pub fn verify<S: AsRef<[u8]>>(secrets: &[S], parts: &[&[u8]], signature: &[u8]) -> Result<(), SignatureError> {
    let mut genuine = false;
    for secret in secrets {
        genuine |= mac(secret.as_ref(), parts).verify_slice(signature).is_ok();
    }
    if genuine { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// Whether one of the secrets is the one given. Their hashes are compared, so the time tells nothing about them.
pub fn same<S: AsRef<[u8]>>(secrets: &[S], given: &[u8]) -> Result<(), SignatureError> {
    let given = Sha256::digest(given);
    let mut genuine = false;
    for secret in secrets {
        genuine |= Sha256::digest(secret.as_ref()) == given;
    }
    if genuine { Ok(()) } else { Err(SignatureError::Mismatch) }
}

pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes().chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}
