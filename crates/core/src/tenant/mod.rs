//! What a tenant has decided for itself.

pub mod caps;
pub mod identity;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Settings of one tenant, kept as JSON: what an older release wrote has the defaults for what it did not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct TenantSettings {
    /// People may approve what they started, where one vote is enough (`approval.self`).
    pub self_approval: bool,
    /// `X-Request-ID` counts as an idempotency key where no other is sent.
    pub request_id_is_key: bool,
    /// Putting a policy in force needs a second admin's approval.
    pub two_keys_for_policy: bool,
    /// So does whatever gives or takes access: people, their roles and groups, keys, these settings.
    pub two_keys_for_access: bool,
    /// Every run gets an evidence bundle at its end; otherwise only those with decisions, approvals or effects.
    pub evidence_always: bool,
    /// The console has a room with a run's plan beside its live output.
    #[serde(rename = "ui.task_workspace.enabled")]
    pub task_workspace: bool,
    /// Workers elsewhere are given steps. Where it is off, steps run in the server's own worker only.
    #[serde(rename = "worker_orchestration.enabled")]
    pub worker_orchestration: bool,
    /// Workers elsewhere may make their calls over one WebSocket. Where it is off, they make requests.
    #[serde(rename = "worker_channel.enabled")]
    pub worker_channel: bool,
    /// Workers elsewhere may make their calls over the broker, where the servers have one.
    #[serde(rename = "worker_broker.enabled")]
    pub worker_broker: bool,
}

/// Parts of the product that are switched on for each tenant.
pub const FLAGS: &[&str] = &[TASK_WORKSPACE, WORKER_BROKER, WORKER_CHANNEL, WORKER_ORCHESTRATION];
/// The console has a room with a run's plan beside its live output.
pub const TASK_WORKSPACE: &str = "ui.task_workspace.enabled";
/// Workers elsewhere may make their calls over the broker.
pub const WORKER_BROKER: &str = "worker_broker.enabled";
/// Workers elsewhere may make their calls over one WebSocket.
pub const WORKER_CHANNEL: &str = "worker_channel.enabled";
/// Workers elsewhere are given steps.
pub const WORKER_ORCHESTRATION: &str = "worker_orchestration.enabled";

impl TenantSettings {
    /// The names of the flags that are on.
    pub fn flags(&self) -> Vec<String> {
        FLAGS.iter().filter(|flag| self.is_on(flag)).map(|flag| (*flag).to_owned()).collect()
    }

    fn is_on(self, flag: &str) -> bool {
        match flag {
            TASK_WORKSPACE => self.task_workspace,
            WORKER_BROKER => self.worker_broker,
            WORKER_CHANNEL => self.worker_channel,
            WORKER_ORCHESTRATION => self.worker_orchestration,
            _ => false,
        }
    }
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self {
            self_approval: false,
            request_id_is_key: true,
            two_keys_for_policy: false,
            two_keys_for_access: false,
            task_workspace: false,
            worker_orchestration: true,
            worker_channel: true,
            worker_broker: true,
            evidence_always: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_said_has_its_default() {
        let settings: TenantSettings = serde_json::from_str(r#"{"self_approval":true}"#).unwrap();
        assert_eq!(settings, TenantSettings { self_approval: true, ..TenantSettings::default() });
        assert_eq!(settings.flags(), [WORKER_BROKER, WORKER_CHANNEL, WORKER_ORCHESTRATION]);
    }
}
