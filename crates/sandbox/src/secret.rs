//! Secrets on their way to a command: by file, never by argument or environment.

use std::fmt;
use std::sync::Arc;

use crate::sys::LockedBytes;

/// A value in locked memory, wiped when the last clone is dropped, that no log shows. Clones share the memory.
#[derive(Clone)]
pub struct SecretValue(Arc<LockedBytes>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("memory for a secret cannot be locked ({0}); raise the limit (`ulimit -l`, LimitMEMLOCK= in a unit)")]
pub struct SecretNotLocked(String);

impl SecretValue {
    pub fn new(value: impl AsRef<[u8]>) -> Result<Self, SecretNotLocked> {
        let held = LockedBytes::holding(value.as_ref()).map_err(|error| SecretNotLocked(error.to_string()))?;
        Ok(Self(Arc::new(held)))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl PartialEq for SecretValue {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for SecretValue {}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(…)")
    }
}

/// The command finds the value in `/run/secrets/<name>`, which it alone can read, and which is gone with the sandbox.
#[derive(Debug, Clone)]
pub(crate) struct SecretFile {
    pub name: String,
    pub value: SecretValue,
}
