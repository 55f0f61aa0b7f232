//! Secrets at rest: sealed under a key of the server's own, bound to the place they are kept for. What is sealed here
//! is never shown again; it is opened only to check or to make a signature.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use interlock_core::ids::TenantId;
use uuid::Uuid;

const VERSION: &str = "v1:";

/// The key. Cheap to clone; shows nothing of itself.
#[derive(Clone)]
pub struct Vault(Arc<RandomizedNonceKey>);

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(…)")
    }
}

/// A sealed secret that cannot be opened: it was made with another key, or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored secret cannot be opened: this server's secret file is not the one it was made with")]
pub struct Unopened;

/// What a secret is for: moved to another row, it cannot be used there.
#[derive(Debug, Clone, Copy)]
pub struct SecretOf {
    pub tenant: TenantId,
    pub of: Uuid,
}

impl SecretOf {
    fn bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(self.tenant.as_bytes());
        bytes[16..].copy_from_slice(self.of.as_bytes());
        bytes
    }
}

impl Vault {
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Arc::new(RandomizedNonceKey::new(&AES_256_GCM, key).expect("the key has the right length")))
    }

    pub fn seal(&self, place: SecretOf, secret: &str) -> String {
        let mut bytes = secret.as_bytes().to_vec();
        let sealed = self.0.seal_in_place_append_tag(Aad::from(place.bytes()), &mut bytes);
        let nonce = sealed.expect("a short text can always be sealed");
        let whole = [nonce.as_ref().as_slice(), &bytes].concat();
        format!("{VERSION}{}", BASE64.encode(whole))
    }

    pub fn open(&self, place: SecretOf, sealed: &str) -> Result<String, Unopened> {
        let encoded = sealed.strip_prefix(VERSION).ok_or(Unopened)?;
        let mut bytes = BASE64.decode(encoded).map_err(|_| Unopened)?;
        let (nonce, rest) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(Unopened)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Unopened)?;
        let opened = self.0.open_in_place(nonce, Aad::from(place.bytes()), rest).map_err(|_| Unopened)?;
        String::from_utf8(opened.to_vec()).map_err(|_| Unopened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_only_with_its_key_and_in_its_place() {
        let (vault, other) = (Vault::new(&[1; 32]), Vault::new(&[2; 32]));
        let place = SecretOf { tenant: TenantId(Uuid::from_u128(1)), of: Uuid::from_u128(2) };
        let sealed = vault.seal(place, "whsec_abc");
        assert_eq!(vault.open(place, &sealed).as_deref(), Ok("whsec_abc"));
        assert_ne!(vault.seal(place, "whsec_abc"), sealed, "equal secrets do not look equal");
        assert!(!sealed.contains("whsec"));
        assert_eq!(other.open(place, &sealed), Err(Unopened));
        assert_eq!(vault.open(SecretOf { of: Uuid::from_u128(3), ..place }, &sealed), Err(Unopened));
        for broken in ["", "v1:", "v1:AAAA", "v2:AAAA", &sealed[..sealed.len() - 2]] {
            assert_eq!(vault.open(place, broken), Err(Unopened), "{broken}");
        }
        assert!(!format!("{vault:?}").contains('1'));
    }
}
