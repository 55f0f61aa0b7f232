//! How often a run has asked models, and for how many of these attempts the log tells no price. A model that was asked is paid
//! for, whether its answer came or not: an attempt whose worker was lost has no cost in the log, and has not cost nothing.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::cost::Cost;
use interlock_core::plan::retry::{ErrorClass, TASK_UNKNOWN};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelAttempts {
    /// Attempts of model steps that a worker has begun.
    pub begun: u64,
    /// Those of them whose price the log does not tell.
    pub unpriced: u64,
}

/// What the log tells so far of the price of a step's last attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptPrice {
    /// The attempt goes on.
    Awaited,
    /// It has ended without a price. A late report may bring it.
    Unknown,
    /// It is told, or the attempt has ended before the model could be asked.
    Known,
}

/// What events tell of the model steps, which are at these positions; nothing where none was begun.
pub fn model_attempts<'a>(steps: &BTreeSet<u32>, events: impl Iterator<Item = &'a Value>) -> Option<ModelAttempts> {
    let mut attempts = ModelAttempts::default();
    let mut last: BTreeMap<u32, AttemptPrice> = BTreeMap::new();
    for event in events {
        let position = event["step"].as_u64().and_then(|step| u32::try_from(step).ok());
        let Some(step) = position.filter(|step| steps.contains(step)) else { continue };
        if event["event"] == "execution.step.started" {
            attempts.begun += 1;
            let earlier = last.insert(step, AttemptPrice::Awaited);
            attempts.unpriced += u64::from(earlier.is_some_and(|price| price != AttemptPrice::Known));
        } else if let Some(price) = last.get_mut(&step) {
            *price = after(*price, event);
        }
    }
    attempts.unpriced += last.values().filter(|price| **price != AttemptPrice::Known).count() as u64;
    (attempts.begun > 0).then_some(attempts)
}

fn after(price: AttemptPrice, event: &Value) -> AttemptPrice {
    let cost = event.get("cost").and_then(|cost| Cost::deserialize(cost).ok());
    if let Some(cost) = cost {
        return if cost.unpriced { AttemptPrice::Unknown } else { AttemptPrice::Known };
    }
    match event["event"].as_str().unwrap_or_default() {
        _ if price != AttemptPrice::Awaited => price,
        // Given back before it had cost anything, or kept from asking until people have agreed.
        "execution.step.ready" | "approval.requested" => AttemptPrice::Known,
        "execution.step.failed" | "execution.step.retrying" if was_kept_from_asking(event) => AttemptPrice::Known,
        "execution.step.completed"
        | "execution.step.failed"
        | "execution.step.retrying"
        | "execution.step.in_doubt"
        | "execution.step.canceled" => AttemptPrice::Unknown,
        _ => price,
    }
}

/// Whether the attempt has ended because policy did not let it ask, or because its worker does not know how to.
fn was_kept_from_asking(event: &Value) -> bool {
    let error = &event["error"];
    error["class"] == ErrorClass::Denied.as_str() || error["code"] == TASK_UNKNOWN
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(events: &[Value]) -> Option<(u64, u64)> {
        let found = model_attempts(&BTreeSet::from([1]), events.iter());
        found.map(|attempts| (attempts.begun, attempts.unpriced))
    }

    fn started() -> Value {
        json!({ "event": "execution.step.started", "step": 1, "attempt": 1 })
    }

    #[test]
    fn an_attempt_without_a_price_is_counted_however_it_ended() {
        let lost = json!({ "class": "lease_expired", "code": "LEASE_EXPIRED", "message": "lost" });
        for end in [
            json!({ "event": "execution.step.completed", "step": 1, "output_bytes": 1 }),
            json!({ "event": "execution.step.failed", "step": 1, "error": lost }),
            json!({ "event": "execution.step.retrying", "step": 1, "error": lost,
                    "cost": { "micros": 0, "unpriced": true } }),
            json!({ "event": "execution.step.in_doubt", "step": 1 }),
            json!({ "event": "execution.step.canceled", "step": 1 }),
            json!({ "event": "session.failed" }),
        ] {
            assert_eq!(counted(&[started(), end.clone()]), Some((1, 1)), "{end}");
            // What another attempt of the step has cost says nothing of this one.
            let priced = json!({ "event": "execution.step.completed", "step": 1, "cost": { "micros": 5 } });
            assert_eq!(counted(&[started(), end.clone(), started(), priced]), Some((2, 1)), "{end}");
        }
    }

    #[test]
    fn an_attempt_with_a_price_or_that_asked_nothing_is_not() {
        let error = |class: &str, code: &str| json!({ "class": class, "code": code, "message": "no" });
        for end in [
            json!({ "event": "execution.step.completed", "step": 1, "cost": { "micros": 5 } }),
            json!({ "event": "execution.step.failed", "step": 1, "cost": { "micros": 0 } }),
            json!({ "event": "execution.step.failed", "step": 1, "error": error("denied", "POLICY_DENIED") }),
            json!({ "event": "execution.step.retrying", "step": 1, "error": error("unavailable", TASK_UNKNOWN) }),
            json!({ "event": "execution.step.ready", "step": 1, "why": "released" }),
            json!({ "event": "approval.requested", "step": 1 }),
        ] {
            assert_eq!(counted(&[started(), end.clone()]), Some((1, 0)), "{end}");
        }
        // The worker that was given up has told it after all.
        let doubt = json!({ "event": "execution.step.in_doubt", "step": 1 });
        let late = json!({ "event": "execution.step.completed", "step": 1, "cost": { "micros": 5 } });
        assert_eq!(counted(&[started(), doubt, late]), Some((1, 0)));
    }

    #[test]
    fn other_steps_are_not_counted() {
        let other = json!({ "event": "execution.step.started", "step": 0, "attempt": 1 });
        assert_eq!(counted(&[other.clone(), json!({ "event": "session.completed" })]), None);
        let ended = json!({ "event": "execution.step.ready", "step": 1, "why": "operator_retry" });
        let doubt = json!({ "event": "execution.step.in_doubt", "step": 1 });
        assert_eq!(counted(&[other, started(), doubt, ended]), Some((1, 1)), "it was in doubt before it was ready");
    }
}
