use interlock_core::json::HashHex;
use interlock_engine::policy::bundles::PolicyInForce;
use interlock_protocol::policy::{PolicyVersion, PolicyView};
use interlock_store::PolicyBundleSummary;

pub fn policy(now: PolicyInForce) -> PolicyView {
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

pub fn version(row: PolicyBundleSummary) -> PolicyVersion {
    let PolicyBundleSummary { version, hash, note, created_at, created_by } = row;
    PolicyVersion { version, hash: HashHex(hash), note, created_at, created_by }
}
