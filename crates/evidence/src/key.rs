//! The Ed25519 key of an installation. Its public half is given away in two forms: PEM (SubjectPublicKeyInfo), which every
//! tool reads, and the line that C2SP's signed notes use.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use interlock_core::json::Hash;
use sha2::{Digest as _, Sha256};

use crate::encoding::{base64, from_base64, hex};

/// What comes before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Ed25519, among the kinds of signature on a note.
const NOTE_ED25519: u8 = 1;

/// Signs. Cheap to clone; shows nothing of itself.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Ed25519KeyPair>,
    public: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// `name` is what the key is called on signed notes; see [`PublicKey::is_name`].
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed of 32 bytes is a key");
        let mut bytes = [0; 32];
        bytes.copy_from_slice(pair.public_key().as_ref());
        Self { pair: Arc::new(pair), public: PublicKey { name: name.to_owned(), bytes } }
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

/// Verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    /// Empty where only a PEM file is known: then the name on a note is not compared.
    pub name: String,
    pub bytes: [u8; 32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no Ed25519 public key: expected PEM (`-----BEGIN PUBLIC KEY-----`) or a line `NAME+KEYID+KEY`")]
pub struct InvalidKey;

impl PublicKey {
    /// Whether a key can be called so on a note: no spaces, no plus sign.
    pub fn is_name(name: &str) -> bool {
        !name.is_empty() && !name.contains('+') && !name.chars().any(char::is_whitespace)
    }

    /// Either form.
    pub fn parse(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        if text.starts_with("-----BEGIN PUBLIC KEY-----") { Self::from_pem(text) } else { Self::from_note_line(text) }
    }

    fn from_pem(text: &str) -> Result<Self, InvalidKey> {
        let body = text.strip_prefix("-----BEGIN PUBLIC KEY-----").ok_or(InvalidKey)?;
        let (body, _) = body.split_once("-----END PUBLIC KEY-----").ok_or(InvalidKey)?;
        let body: String = body.split_whitespace().collect();
        let der = from_base64(&body).ok_or(InvalidKey)?;
        let bytes = der.strip_prefix(&SPKI_PREFIX).and_then(|bytes| bytes.try_into().ok()).ok_or(InvalidKey)?;
        Ok(Self { name: String::new(), bytes })
    }

    fn from_note_line(text: &str) -> Result<Self, InvalidKey> {
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(InvalidKey);
        };
        let key = from_base64(key).ok_or(InvalidKey)?;
        let (&NOTE_ED25519, bytes) = key.split_first().ok_or(InvalidKey)? else { return Err(InvalidKey) };
        let bytes = bytes.try_into().map_err(|_| InvalidKey)?;
        let key = Self { name: name.to_owned(), bytes };
        if Self::is_name(name) && hex(&key.note_id()) == id { Ok(key) } else { Err(InvalidKey) }
    }

    pub fn to_pem(&self) -> String {
        let der = [SPKI_PREFIX.as_slice(), &self.bytes].concat();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", base64(&der))
    }

    pub fn to_note_line(&self) -> String {
        let key = [&[NOTE_ED25519], self.bytes.as_slice()].concat();
        format!("{}+{}+{}", self.name, hex(&self.note_id()), base64(&key))
    }

    /// How envelopes call the key: the hash of its SubjectPublicKeyInfo.
    pub fn id(&self) -> Hash {
        Hash::of(&[SPKI_PREFIX.as_slice(), &self.bytes].concat())
    }

    /// How notes call the key, beside its name.
    pub(crate) fn note_id(&self) -> [u8; 4] {
        let digest = Sha256::new()
            .chain_update(self.name.as_bytes())
            .chain_update([b'\n', NOTE_ED25519])
            .chain_update(self.bytes)
            .finalize();
        [digest[0], digest[1], digest[2], digest[3]]
    }

    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first key pair and signature of RFC 8032 §7.1.
    #[test]
    fn rfc_8032() {
        let seed =
            crate::encoding::from_hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let key = SigningKey::from_seed("t", &seed);
        assert_eq!(hex(&key.public().bytes), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert!(hex(&key.sign(b"")).starts_with("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e0652249015"));
    }

    #[test]
    fn both_forms_are_read_back_and_others_refused() {
        let key = SigningKey::from_seed("interlock/one", &[3; 32]);
        let public = key.public();
        assert_eq!(PublicKey::parse(&public.to_note_line()).unwrap(), *public);
        let pem = PublicKey::parse(&public.to_pem()).unwrap();
        assert_eq!((pem.bytes, pem.id()), (public.bytes, public.id()));
        let renamed = public.to_note_line().replace("one", "two");
        for bad in
            ["", "a+b", "a+00000000+AAAA", &renamed, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"]
        {
            assert_eq!(PublicKey::parse(bad), Err(InvalidKey), "{bad}");
        }
        let signature = key.sign(b"text");
        assert!(pem.verifies(b"text", &signature));
        assert!(!pem.verifies(b"Text", &signature));
        assert!(!SigningKey::from_seed("t", &[4; 32]).public().verifies(b"text", &signature));
        let public_only = format!("{key:?}");
        assert!(!public_only.contains("pair"));
    }
}
