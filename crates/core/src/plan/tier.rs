//! [`Tier`]: how much an approval lets happen. A high one is never given in passing: the approver names the digest of
//! what they were shown.

use std::fmt;
use std::str::FromStr;

use crate::plan::{BlastRadius, Plan, StepSpec, Work};
use crate::state::{UnknownName, names};

names!(
    /// How much an approval lets happen.
    Tier, "tier", {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
);

impl Plan {
    /// The tier of the gate at `position`: that of the steps behind it, up to the next gate that always asks. Two keys
    /// and destructive steps are high. So is what the plan does not know.
    pub fn tier(&self, position: u32) -> Tier {
        let Some(Work::Approval(gate)) = self.step(position).map(|step| &step.work) else { return Tier::High };
        if gate.quorum > 1 {
            return Tier::High;
        }
        let asks = |step: &&StepSpec| matches!(step.work, Work::Approval(_)) && step.condition.is_none();
        let behind = self.steps.iter().skip(position as usize + 1).take_while(|step| !asks(step));
        behind.map(StepSpec::tier).max().unwrap_or(Tier::Low)
    }
}

impl StepSpec {
    fn tier(&self) -> Tier {
        match self.blast_radius() {
            _ if self.rules.destructive => Tier::High,
            BlastRadius::Low => Tier::Low,
            BlastRadius::Medium => Tier::Medium,
            BlastRadius::High => Tier::High,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Gate;
    use crate::state::EffectClass;

    fn gate(quorum: u32) -> StepSpec {
        let gate: Gate = serde_json::from_value(serde_json::json!({ "quorum": quorum })).unwrap();
        StepSpec::new(format!("gate-{quorum}"), Work::Approval(gate))
    }

    fn reaching(radius: BlastRadius) -> StepSpec {
        StepSpec { blast_radius: Some(radius), ..StepSpec::task("t", "t") }
    }

    fn tier(steps: Vec<StepSpec>) -> Tier {
        Plan::new("demo", steps).tier(0)
    }

    #[test]
    fn a_gate_has_the_tier_of_what_it_lets_happen() {
        let read = StepSpec { effect: Some(EffectClass::Read), ..StepSpec::task("r", "r") };
        let mut destructive = read.clone();
        destructive.rules.destructive = true;
        assert_eq!(tier(vec![gate(1)]), Tier::Low);
        assert_eq!(tier(vec![gate(1), read.clone()]), Tier::Low);
        assert_eq!(tier(vec![gate(1), read.clone(), StepSpec::task("t", "t")]), Tier::Medium);
        assert_eq!(tier(vec![gate(1), read, reaching(BlastRadius::High)]), Tier::High);
        assert_eq!(tier(vec![gate(1), destructive]), Tier::High);
        assert_eq!(tier(vec![gate(2)]), Tier::High);
        assert_eq!(tier(vec![StepSpec::task("t", "t")]), Tier::High, "no gate");
        assert_eq!(tier(vec![]), Tier::High);
    }

    #[test]
    fn what_lies_behind_another_gate_is_that_ones_business_unless_it_may_be_skipped() {
        let far = || reaching(BlastRadius::High);
        assert_eq!(tier(vec![gate(1), gate(1), far()]), Tier::Low);
        let mut perhaps = gate(1);
        perhaps.condition = Some("inputs.x".into());
        assert_eq!(tier(vec![gate(1), perhaps, far()]), Tier::High);
    }
}
