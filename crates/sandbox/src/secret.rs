//! Secrets on their way to a command: by descriptor or by file, never by argument or environment.

use std::fmt;

use zeroize::Zeroizing;

/// A value that is wiped when it is dropped and that no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(value.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// Where a command finds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretPlace {
    /// `/run/secrets/<name>`, readable by the command only, gone with the sandbox.
    File(String),
    /// A pipe at this number: 0 is standard input. It can be read once.
    Descriptor(i32),
}

#[derive(Debug, Clone)]
pub(crate) struct GivenSecret {
    pub place: SecretPlace,
    pub value: SecretValue,
}
