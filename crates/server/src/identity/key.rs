//! How a key is written: `ilk_`, twelve characters to look it up by, forty-three that are the secret (256 bits).

use std::fmt;

use interlock_core::json::Hash;
use subtle::ConstantTimeEq as _;

use super::secret::{ServerSecret, random_bytes};

pub const PREFIX: &str = "ilk_";
const LOOKUP_CHARS: usize = 12;
const SECRET_CHARS: usize = 43;
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// 62^43 is more than 2^256.
const _: () = assert!(SECRET_CHARS * 5954 > 256_000);

/// A key as its holder has it. Shown once, when it is made; never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyText(String);

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}…", self.lookup())
    }
}

impl KeyText {
    pub fn random() -> Self {
        Self(format!("{PREFIX}{}", random_text(LOOKUP_CHARS + SECRET_CHARS)))
    }

    /// What a request or a file holds, if it has the form of a key.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let is_key = rest.len() == LOOKUP_CHARS + SECRET_CHARS && rest.bytes().all(|byte| ALPHABET.contains(&byte));
        is_key.then(|| Self(text.to_owned()))
    }

    /// The part that finds the row and proves nothing.
    pub fn lookup(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + LOOKUP_CHARS]
    }

    /// The key itself, for its holder.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self, secret: &ServerSecret) -> Hash {
        secret.hash("api-key", self.0.as_bytes())
    }
}

/// Compares without telling by its time where they differ.
pub fn same(one: Hash, other: Hash) -> bool {
    one.0.ct_eq(&other.0).into()
}

/// The same for texts; their lengths are no secret.
pub fn same_text(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// Letters and digits, each as likely as any other.
pub fn random_text(chars: usize) -> String {
    let mut text = String::with_capacity(chars);
    while text.len() < chars {
        for byte in random_bytes::<64>() {
            // 248 = 4 × 62: what is above would favour the first letters.
            if byte < 248 && text.len() < chars {
                text.push(char::from(ALPHABET[usize::from(byte) % ALPHABET.len()]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_and_hides_itself() {
        let key = KeyText::random();
        assert_eq!(KeyText::parse(key.reveal()), Some(key.clone()));
        assert_ne!(key, KeyText::random());
        assert!(!format!("{key:?}").contains(&key.reveal()[20..]));
        let mut other = key.reveal().to_owned();
        other.pop();
        for wrong in ["", "ilk_", &other, &format!("{other}-"), &format!("{other}ab"), &key.reveal()[4..]] {
            assert_eq!(KeyText::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_character_of_the_key_counts() {
        let secret = ServerSecret::random();
        let key = KeyText::random();
        let mut last = key.reveal().to_owned();
        let changed = if last.ends_with('a') { 'b' } else { 'a' };
        last.pop();
        last.push(changed);
        let other = KeyText::parse(&last).unwrap();
        assert_eq!(key.lookup(), other.lookup());
        assert!(same(key.hash(&secret), key.hash(&secret)));
        assert!(!same(key.hash(&secret), other.hash(&secret)));
        assert!(!same(key.hash(&secret), key.hash(&ServerSecret::random())));
    }
}
