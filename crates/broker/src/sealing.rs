//! The seal of a message: encrypted, and bound to what it is. What was sealed as one thing does not open as another.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use zeroize::Zeroizing;

pub const KEY_BYTES: usize = 32;

const LABEL: &[u8] = b"interlock broker v1";

/// What a text is sealed as. All of it has to be the same when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedAs<'a> {
    /// Of a server, for all servers of the installation.
    Ticket,
    /// From the worker of a channel to a server.
    Call { channel: &'a str, kind: &'a str },
    /// From a server to the worker of a channel, for one of its calls.
    Answer { channel: &'a str, kind: &'a str, call: &'a str },
}

impl SealedAs<'_> {
    /// Each part with its length before it, so that no two of these have the same bytes.
    fn bytes(self) -> Vec<u8> {
        let parts: [&[u8]; 4] = match self {
            Self::Ticket => [b"ticket", b"", b"", b""],
            Self::Call { channel, kind } => [b"call", channel.as_bytes(), kind.as_bytes(), b""],
            Self::Answer { channel, kind, call } => [b"answer", channel.as_bytes(), kind.as_bytes(), call.as_bytes()],
        };
        let mut bytes = LABEL.to_vec();
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

/// A key, ready to be used. Shows nothing of itself.
pub struct Sealer(RandomizedNonceKey);

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer(…)")
    }
}

/// It was sealed with another key, as something else, or was changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the seal does not open")]
pub struct Unopened;

impl Sealer {
    pub fn new(key: &[u8; KEY_BYTES]) -> Self {
        Self(RandomizedNonceKey::new(&AES_256_GCM, key).expect("the key has the right length"))
    }

    pub fn seal(&self, what: SealedAs<'_>, plain: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(plain.len() + AES_256_GCM.tag_len() + NONCE_LEN);
        bytes.extend_from_slice(plain);
        let sealed = self.0.seal_in_place_append_tag(Aad::from(what.bytes()), &mut bytes);
        let nonce = sealed.expect("what fits into memory can be sealed");
        bytes.extend_from_slice(nonce.as_ref());
        bytes
    }

    pub fn open(&self, what: SealedAs<'_>, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Unopened> {
        let (text, nonce) = sealed.split_at_checked(sealed.len().wrapping_sub(NONCE_LEN)).ok_or(Unopened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened)?;
        let mut text = Zeroizing::new(text.to_vec());
        let opened = self.0.open_in_place(nonce, Aad::from(what.bytes()), &mut text).map_err(|_| Unopened)?;
        let length = opened.len();
        text.truncate(length);
        Ok(text)
    }
}

/// A new random key.
pub fn fresh_key() -> Zeroizing<[u8; KEY_BYTES]> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    random(&mut *key);
    key
}

/// A new random name: 128 bits, written with 32 hexadecimal digits.
pub fn fresh_name() -> String {
    let mut bytes = [0; 16];
    random(&mut bytes);
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn random(bytes: &mut [u8]) {
    // Without randomness there are no secrets; nothing here can go on.
    aws_lc_rs::rand::fill(bytes).expect("the system has a source of randomness");
}

/// As it goes over the wire, once, in the answer to a request.
pub fn text_of_key(key: &[u8; KEY_BYTES]) -> String {
    BASE64.encode(key)
}

pub fn key_of_text(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let bytes = Zeroizing::new(BASE64.decode(text).ok()?);
    let key: [u8; KEY_BYTES] = bytes.as_slice().try_into().ok()?;
    Some(Zeroizing::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: SealedAs<'_> = SealedAs::Call { channel: "c", kind: "session.call" };
    const ANSWER: SealedAs<'_> = SealedAs::Answer { channel: "c", kind: "session.call", call: "1" };

    #[test]
    fn what_was_sealed_opens_as_what_it_is() {
        let sealer = Sealer::new(&fresh_key());
        for what in [SealedAs::Ticket, CALL, ANSWER] {
            for plain in [&b""[..], b"x", &vec![7; 300_000]] {
                let sealed = sealer.seal(what, plain);
                assert_eq!(sealer.open(what, &sealed).map(|opened| opened.to_vec()), Ok(plain.to_vec()));
                assert_ne!(sealer.seal(what, plain), sealed, "equal texts do not look equal");
            }
        }
    }

    #[test]
    fn every_bit_counts() {
        let sealer = Sealer::new(&fresh_key());
        let sealed = sealer.seal(CALL, b"here is a step");
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(sealer.open(CALL, &changed), Err(Unopened), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(sealer.open(CALL, &sealed[..length]), Err(Unopened), "{length} bytes");
        }
        let longer = [&*sealed, b"x"].concat();
        assert_eq!(sealer.open(CALL, &longer), Err(Unopened));
        assert_eq!(Sealer::new(&fresh_key()).open(CALL, &sealed), Err(Unopened), "another key");
    }

    /// Direction, channel, kind and call are part of the seal, and so is where one of them ends.
    #[test]
    fn nothing_opens_as_something_else() {
        let sealer = Sealer::new(&fresh_key());
        let all = [
            SealedAs::Ticket,
            CALL,
            SealedAs::Call { channel: "d", kind: "session.call" },
            SealedAs::Call { channel: "c", kind: "session.result" },
            SealedAs::Call { channel: "csession.", kind: "call" },
            ANSWER,
            SealedAs::Answer { channel: "d", kind: "session.call", call: "1" },
            SealedAs::Answer { channel: "c", kind: "session.command", call: "1" },
            SealedAs::Answer { channel: "c", kind: "session.call", call: "2" },
            SealedAs::Answer { channel: "c", kind: "session.call1", call: "" },
        ];
        for one in all {
            let sealed = sealer.seal(one, b"text");
            for other in all {
                assert_eq!(sealer.open(other, &sealed).is_ok(), one == other, "{one:?} as {other:?}");
            }
        }
    }

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = fresh_key();
        assert_eq!(key_of_text(&text_of_key(&key)).as_deref(), Some(&*key));
        for text in ["", "AAAA", &"A".repeat(44), "not base64 at all, but as long as a key is."] {
            assert_eq!(key_of_text(text), None, "{text}");
        }
        assert_ne!(*fresh_key(), *key);
        assert_ne!(fresh_name(), fresh_name());
    }
}
