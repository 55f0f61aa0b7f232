use interlock_core::json::HashHex;
use interlock_engine::policy::bundles::PolicyInForce;
use interlock_protocol::policy::{PolicyVersion, PolicyView};
use interlock_store::PolicyBundleSummary;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::state::AppState;

/// The policy for a caller, with the name of the key that changed it.
pub async fn named(state: &AppState, caller: &Caller, now: PolicyInForce) -> Result<PolicyView, ApiError> {
    let mut policy = policy(now);
    name_keys(state, caller, policy.updated_by.iter_mut().collect()).await?;
    Ok(policy)
}

fn policy(now: PolicyInForce) -> PolicyView {
    let row = now.row.as_ref();
    PolicyView {
        active: row.and_then(|row| row.active),
        active_hash: HashHex(now.active),
        shadow: row.and_then(|row| row.shadow),
        shadow_hash: now.shadow.map(HashHex),
        latest: row.map(|row| row.latest),
        revision: row.map_or(0, |row| row.revision),
        updated_at: row.map(|row| row.updated_at),
        updated_by: row.and_then(|row| row.updated_by.clone()),
    }
}

/// Versions for a caller, with the names of the keys that gave them.
pub async fn versions(
    state: &AppState,
    caller: &Caller,
    rows: Vec<PolicyBundleSummary>,
) -> Result<Vec<PolicyVersion>, ApiError> {
    let mut versions: Vec<PolicyVersion> = rows.into_iter().map(version).collect();
    name_keys(state, caller, versions.iter_mut().filter_map(|version| version.created_by.as_mut()).collect()).await?;
    Ok(versions)
}

/// A version that the caller gives.
pub fn version_made_by(caller: &Caller, row: PolicyBundleSummary) -> PolicyVersion {
    let mut version = version(row);
    version.created_by = caller.in_words(version.created_by);
    version
}

fn version(row: PolicyBundleSummary) -> PolicyVersion {
    let PolicyBundleSummary { version, hash, note, created_at, created_by } = row;
    PolicyVersion { version, hash: HashHex(hash), note, created_at, created_by }
}
