//! What a run has cost, by provider, model and unit, as its events tell it.

use std::collections::BTreeMap;

use interlock_core::cost::Cost;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What was spent on one model of one provider, in one unit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostFacts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The unit of `micros`, where the workflow names one (`limits.unit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Attempts that have reported a cost.
    pub attempts: u64,
    /// Millionths of the unit.
    pub micros: u64,
    /// Some of them did not know their price, so more was spent than `micros`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// The costs that events tell of, in the order of providers, models and units. Amounts of two units are not added up.
pub fn costs<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<CostFacts> {
    let mut sums: BTreeMap<[Option<String>; 3], CostFacts> = BTreeMap::new();
    for cost in events.filter_map(|event| Cost::deserialize(event.get("cost")?).ok()) {
        let key = [cost.provider.clone(), cost.model.clone(), cost.unit.clone()];
        let sum = sums.entry(key).or_insert_with(|| CostFacts {
            provider: cost.provider,
            model: cost.model,
            unit: cost.unit,
            ..CostFacts::default()
        });
        sum.attempts += 1;
        sum.micros = sum.micros.saturating_add(cost.micros);
        sum.unpriced |= cost.unpriced;
        sum.input_tokens = sum.input_tokens.saturating_add(cost.input_tokens.unwrap_or_default());
        sum.output_tokens = sum.output_tokens.saturating_add(cost.output_tokens.unwrap_or_default());
    }
    sums.into_values().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn costs_are_summed_by_provider_and_model() {
        let event = |model: &str, micros: u64| {
            json!({ "event": "execution.step.completed", "step": 1,
                    "cost": { "micros": micros, "model": model, "provider": "acme", "input_tokens": 2 } })
        };
        let events = [event("b", 1), json!({ "event": "session.created" }), event("a", 2), event("b", 3)];
        let found = costs(events.iter());
        let told: Vec<_> = found.iter().map(|cost| (cost.model.as_deref(), cost.micros, cost.attempts)).collect();
        assert_eq!(told, [(Some("a"), 2, 1), (Some("b"), 4, 2)]);
        assert_eq!(found[1].input_tokens, 4);
    }

    #[test]
    fn a_sum_names_its_unit_and_has_one_only() {
        let event = |unit: Option<&str>, micros: u64| {
            let mut cost = json!({ "micros": micros, "provider": "acme" });
            if let Some(unit) = unit {
                cost["unit"] = unit.into();
            }
            json!({ "event": "execution.step.completed", "step": 1, "cost": cost })
        };
        let events = [event(Some("EUR"), 1), event(Some("USD"), 2), event(Some("EUR"), 3), event(None, 4)];
        let found = costs(events.iter());
        let told: Vec<_> = found.iter().map(|cost| (cost.unit.as_deref(), cost.micros, cost.attempts)).collect();
        assert_eq!(told, [(None, 4, 1), (Some("EUR"), 4, 2), (Some("USD"), 2, 1)]);
        assert!(!serde_json::to_string(&found[0]).unwrap().contains("unit"), "what has none is told as before");
    }
}
