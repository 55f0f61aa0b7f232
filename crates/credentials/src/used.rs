//! [`CredentialUsed`]: what is recorded about a credential: ids and times, never a value.

use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A credential that a step was given. `vault_request_id` is the id under which the Vault's audit log has the read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}
