//! [`CredentialUsed`]: what is recorded about a credential: ids and times, never a value.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::Timestamp;

/// Credentials that one report may name.
pub const CREDENTIALS_PER_REPORT_MAX: usize = 64;
/// The longest id of a credential, of a request or of a lease.
pub const CREDENTIAL_ID_BYTES_MAX: usize = 512;

/// A credential that a step was given. `vault_request_id` is the id under which the Vault's audit log has the read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialUsed {
    /// The provider and the secret's name, as in `corp/DB_PASSWORD`.
    pub credential_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    pub fetched_at: Timestamp,
    /// When its lease was revoked; absent where there was none, or where the provider has not confirmed it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// How long its provider took to answer. Only a worker says so, and it is counted, not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch_ms: Option<u64>,
}

impl CredentialUsed {
    /// The provider that it is from.
    pub fn provider(&self) -> &str {
        self.credential_id.split_once('/').map_or("", |(provider, _)| provider)
    }
}

/// What is wrong with the credentials that a worker reports.
pub fn check(credentials: &[CredentialUsed]) -> Result<(), String> {
    if credentials.len() > CREDENTIALS_PER_REPORT_MAX {
        return Err(format!("a report names at most {CREDENTIALS_PER_REPORT_MAX} credentials"));
    }
    let ids = |used: &CredentialUsed| {
        [Some(&used.credential_id), used.vault_request_id.as_ref(), used.lease_id.as_ref()]
            .into_iter()
            .flatten()
            .all(|id| id.len() <= CREDENTIAL_ID_BYTES_MAX)
    };
    if credentials.iter().all(ids) {
        return Ok(());
    }
    Err(format!("the ids of a credential are at most {CREDENTIAL_ID_BYTES_MAX} bytes long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reported_has_bounds() {
        let used = |id: &str| CredentialUsed {
            credential_id: id.to_owned(),
            vault_request_id: None,
            lease_id: None,
            fetched_at: Timestamp(1),
            revoked_at: None,
            fetch_ms: None,
        };
        assert_eq!((used("corp/DB").provider(), used("DB").provider()), ("corp", ""));
        assert_eq!(check(&[used("corp/DB")]), Ok(()));
        assert!(check(&[used(&"x".repeat(CREDENTIAL_ID_BYTES_MAX + 1))]).is_err());
        assert!(check(&vec![used("corp/DB"); CREDENTIALS_PER_REPORT_MAX + 1]).is_err());
    }
}
