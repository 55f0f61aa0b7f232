//! Secrets as calls need them: a credential that cannot be had means that nothing was sent.

use interlock_credentials::{CredentialError, SecretMemoryError};

use crate::failure::{CallFailure, Sent};

/// What stands in the place of a secret that a target repeats.
pub(super) const HIDDEN: &str = "***";
/// Shorter ones would be found everywhere.
pub(super) const HIDDEN_BYTES_LEAST: usize = 4;

pub(super) fn not_had(error: CredentialError) -> CallFailure {
    let failure = CallFailure::new(Sent::CertainlyNot, error.cause.class(), error.cause.code(), error.to_string());
    CallFailure { after: error.retry_after(), ..failure }
}

/// A form of a secret that cannot be kept safely.
pub(super) fn not_kept(name: &str, error: SecretMemoryError) -> CallFailure {
    CallFailure::refused("SECRET_UNUSABLE", format!("the secret `{name}` cannot be used: {error}"))
}
