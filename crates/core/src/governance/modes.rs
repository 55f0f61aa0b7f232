//! Validation modes: before which steps people are promised to be asked. The policy keeps the promise.

use crate::plan::rules::ValidationMode;
use crate::plan::{BlastRadius, Plan, Work};

impl Plan {
    /// The mode that the plan promises to keep: the one that the workflow declares or the start asks for, else the
    /// profile's own, or, where a step has a high blast radius, every step, profile or not.
    pub fn promised_mode(&self) -> Option<ValidationMode> {
        let declared = self.rules.approval.as_ref().and_then(|approval| approval.mode);
        let is_meant = self.rules.profile.is_some() || self.blast_radius() == BlastRadius::High;
        declared.or_else(|| is_meant.then(|| self.validation_mode()))
    }

    /// For each step, whether a mode asks people before it.
    pub fn asked_in(&self, mode: ValidationMode) -> Vec<bool> {
        // One with a condition may be left out, and then it is not the last: it is asked about besides.
        let surely_last = self.steps.iter().rposition(|step| step.is_governed() && step.condition.is_none());
        let mut phase = None;
        let each = self.steps.iter().enumerate().map(|(index, step)| {
            let begins = step.is_governed() && phase != Some(step.rules.phase);
            if step.is_governed() {
                phase = Some(step.rules.phase);
            }
            match mode {
                ValidationMode::PerStep => step.is_governed(),
                ValidationMode::PerPhase => begins,
                ValidationMode::CriticalOnly => step.rules.critical || step.rules.destructive,
                ValidationMode::FinalOnly => step.is_governed() && Some(index) >= surely_last,
            }
        });
        each.collect()
    }

    /// Where people are asked before each phase: the later steps of the phase, which they are asked about along with this one. A
    /// step with a condition, or behind a gate of the workflow's, is asked about for itself.
    pub fn asked_along(&self, position: u32) -> Vec<u32> {
        let Some(asked) = self.step(position).filter(|step| step.is_governed()) else { return Vec::new() };
        if self.promised_mode() != Some(ValidationMode::PerPhase) {
            return Vec::new();
        }
        let later = self.steps.iter().zip(0..).skip(position as usize + 1);
        later
            .take_while(|(step, _)| !matches!(step.work, Work::Approval(_)))
            .take_while(|(step, _)| !step.is_governed() || step.rules.phase == asked.rules.phase)
            .filter(|(step, _)| step.is_governed() && step.condition.is_none())
            .map(|(_, position)| position)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StepSpec;
    use crate::plan::rules::{ApprovalRules, StepPhase};
    use crate::state::EffectClass;

    fn task(key: &str, change: impl FnOnce(&mut StepSpec)) -> StepSpec {
        let mut step = StepSpec::task(key, "work");
        change(&mut step);
        step
    }

    fn asked(mode: Option<ValidationMode>, profile: Option<&str>, steps: Vec<StepSpec>) -> Vec<String> {
        let mut plan = Plan::new("demo", steps);
        plan.rules.profile = profile.map(str::to_owned);
        plan.rules.approval = mode.map(|mode| ApprovalRules { mode: Some(mode), ..ApprovalRules::default() });
        let Some(mode) = plan.promised_mode() else { return Vec::new() };
        let asked = plan.steps.iter().zip(plan.asked_in(mode)).filter(|(_, asked)| *asked);
        asked.map(|(step, _)| step.key.clone()).collect()
    }

    #[test]
    fn each_mode_asks_before_its_own_steps() {
        let steps = || {
            vec![
                task("look", |step| step.effect = Some(EffectClass::Read)),
                task("first", |step| step.rules.phase = Some(StepPhase::Main)),
                task("second", |step| step.rules.phase = Some(StepPhase::Main)),
                task("drop", |step| (step.rules.destructive, step.rules.phase) = (true, Some(StepPhase::Postchecks))),
                task("last", |step| (step.rules.critical, step.rules.phase) = (true, Some(StepPhase::Postchecks))),
                task("report", |step| step.effect = Some(EffectClass::Read)),
            ]
        };
        let of = |mode| asked(Some(mode), None, steps());
        assert_eq!(of(ValidationMode::PerStep), ["first", "second", "drop", "last"]);
        assert_eq!(of(ValidationMode::PerPhase), ["first", "drop"]);
        assert_eq!(of(ValidationMode::CriticalOnly), ["drop", "last"]);
        assert_eq!(of(ValidationMode::FinalOnly), ["last"]);
        assert_eq!(asked(None, None, steps()), Vec::<String>::new(), "nothing was promised");
        let is_left_out = |key: &str| task(key, |step| step.condition = Some("false".to_owned()));
        let or_nothing = steps().into_iter().chain([is_left_out("extra"), is_left_out("more")]).collect();
        assert_eq!(asked(Some(ValidationMode::FinalOnly), None, or_nothing), ["last", "extra", "more"]);
        let all_may_be = vec![is_left_out("a"), is_left_out("b")];
        assert_eq!(asked(Some(ValidationMode::FinalOnly), None, all_may_be), ["a", "b"]);
        let far = || steps().into_iter().chain([task("wipe", |step| step.blast_radius = Some(BlastRadius::High))]);
        let all = ["first", "second", "drop", "last", "wipe"];
        assert_eq!(
            asked(None, None, far().collect()),
            all,
            "a high blast radius asks before every step, without a profile too"
        );
        assert_eq!(asked(None, Some("prod-critical"), steps()), of(ValidationMode::PerStep));
        assert_eq!(asked(None, Some("dev-flex"), steps()), of(ValidationMode::CriticalOnly));
    }
}
