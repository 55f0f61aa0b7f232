use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::json::{Hash, HashHex};
use serde::{Serialize, Serializer};

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// A hash as text. Every entry has some, so they are spelled in one piece.
#[derive(Clone, Copy)]
pub(crate) struct HashText(pub Hash);

impl Serialize for HashText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0.0))
    }
}

/// The same, for a field that may be absent.
#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
pub(crate) fn opt_hash<S: Serializer>(hash: &Option<HashHex>, serializer: S) -> Result<S::Ok, S::Error> {
    hash.map(|hash| HashText(hash.0)).serialize(serializer)
}

pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
