//! Under which rules the steps and effects of a run were let happen, as its events tell it. What policy allows in every run of
//! a workflow version is decided once and has no decision of its own in the run; the event of the step that was handed out, or of
//! the effect, names the bundle. A step whose bundle an earlier one was the last to name says only that it is the same.

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
    #[serde(default)]
    bundle: Option<HashHex>,
    #[serde(default)]
    same_bundle: bool,
}

/// What events tell of it, in their order. A decision that was recorded stands among the decisions.
pub fn leave<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<LeaveFacts> {
    let mut named = None;
    let told = |event: &Value| {
        let starts_step = event["event"] == "execution.step.started";
        if !starts_step && event["event"] != "receipt.recorded" {
            return None;
        }
        let Permitting { step, attempt, receipt, bundle, same_bundle } = Permitting::deserialize(event).ok()?;
        if starts_step {
            named = bundle.or(named);
        }
        let bundle = if starts_step && same_bundle { named } else { bundle };
        Some(LeaveFacts { position: step, attempt, receipt, bundle: bundle? })
    };
    events.filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Hash;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_step_under_the_same_rules_as_one_before_it_names_them() {
        let bundles = [3, 4].map(|byte| HashHex(Hash([byte; 32])));
        let started = |step: u32, rest: Value| {
            let mut event = json!({ "event": "execution.step.started", "step": step, "attempt": 1, "session": "s" });
            event.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            event
        };
        let receipt = ReceiptId::from_bytes([6; 16]);
        let events = [
            // Nothing has named them yet: nothing is told of it.
            started(9, json!({ "same_bundle": true })),
            started(0, json!({ "bundle": bundles[0] })),
            started(1, json!({ "same_bundle": true })),
            // Without leave for the whole step.
            started(2, json!({})),
            // An effect names its own rules, and those of no step.
            json!({ "event": "receipt.recorded", "step": 2, "attempt": 1, "receipt": receipt, "bundle": bundles[1] }),
            started(3, json!({ "same_bundle": true })),
            started(4, json!({ "bundle": bundles[1] })),
            started(5, json!({ "same_bundle": true })),
        ];
        let told = leave(events.iter());
        let told: Vec<_> = told.iter().map(|fact| (fact.position, fact.receipt.is_some(), fact.bundle)).collect();
        let [old, new] = bundles;
        let wanted =
            [(0, false, old), (1, false, old), (2, true, new), (3, false, old), (4, false, new), (5, false, new)];
        assert_eq!(told, wanted);
    }

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
