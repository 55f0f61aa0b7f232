//! Under which rules the steps and effects of a run were let happen, as its events tell it. What policy allows in every run of
//! a workflow version is decided once and has no decision of its own in the run; the event of the step that was handed out, or of
//! the effect, names the bundle.

use interlock_core::ids::ReceiptId;
use interlock_core::json::HashHex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step that was handed out, or one effect, and the rules that allowed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaveFacts {
    pub position: u32,
    pub attempt: u32,
    /// The effect; none where it is leave for the whole step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptId>,
    /// The hash of the rules.
    pub bundle: HashHex,
}

/// An event that names the rules under which something is let happen.
#[derive(Deserialize)]
struct Permitting {
    step: u32,
    attempt: u32,
    #[serde(default)]
    receipt: Option<ReceiptId>,
    bundle: HashHex,
}

/// What events tell of it, in their order. A decision that was recorded stands among the decisions.
pub fn leave<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<LeaveFacts> {
    let permits = |event: &&Value| event["event"] == "execution.step.started" || event["event"] == "receipt.recorded";
    let told = events.filter(permits).filter_map(|event| Permitting::deserialize(event).ok());
    told.map(|Permitting { step, attempt, receipt, bundle }| LeaveFacts { position: step, attempt, receipt, bundle })
        .collect()
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Hash;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_let_happen_names_its_rules() {
        let bundle = HashHex(Hash([3; 32]));
        let receipt = ReceiptId::from_bytes([6; 16]);
        let events = [
            json!({ "event": "execution.step.started", "step": 0, "attempt": 1, "session": "s", "bundle": bundle }),
            json!({ "event": "execution.step.started", "step": 1, "attempt": 1, "session": "s" }),
            json!({ "event": "policy.decided", "step": 1, "attempt": 1, "bundle": bundle }),
            json!({ "event": "receipt.recorded", "step": 1, "attempt": 2, "receipt": receipt, "bundle": bundle }),
        ];
        let step = LeaveFacts { position: 0, attempt: 1, receipt: None, bundle };
        let effect = LeaveFacts { position: 1, attempt: 2, receipt: Some(receipt), bundle };
        assert_eq!(leave(events.iter()), [step, effect]);
    }
}
