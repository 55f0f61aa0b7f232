//! Which credentials the steps of a run were given, as the contexts of its changes tell it: ids and times, never a value.

use interlock_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where the context of a change names them.
pub const CREDENTIALS_USED: &str = "credentials_used";

/// One credential that one attempt was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialFacts {
    pub position: u32,
    pub attempt: u32,
    /// The provider and the secret's name.
    pub credential_id: String,
    /// The id under which the provider's own audit log has the read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault_request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_id: Option<String>,
    pub fetched_at: Timestamp,
    /// Absent where there was no lease, or where the provider had not confirmed it when the attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

/// The credentials that contexts tell of, in their order.
pub fn credentials<'a>(contexts: impl Iterator<Item = &'a Value>) -> Vec<CredentialFacts> {
    contexts
        .filter_map(|context| Vec::<CredentialFacts>::deserialize(context.get(CREDENTIALS_USED)?).ok())
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contexts_that_name_credentials_are_read_in_order() {
        let used = |id: &str| json!({ "position": 0, "attempt": 1, "credential_id": id, "fetched_at": 5 });
        let contexts = [json!({ "reason": "x" }), json!({ CREDENTIALS_USED: [used("b"), used("a")] })];
        let ids: Vec<_> = credentials(contexts.iter()).into_iter().map(|used| used.credential_id).collect();
        assert_eq!(ids, ["b", "a"]);
    }
}
