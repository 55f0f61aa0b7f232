//! Steps before which people are promised to be asked, and nobody asks. A validation mode is such a promise; as long as
//! no policy asks by itself, only an `approval` step keeps it. What is promised and not kept is refused at the start,
//! so that nobody relies on a question that is never put.

use crate::plan::rules::ValidationMode;
use crate::plan::{Plan, Work};

impl Plan {
    /// The mode that somebody relies on: the one that was declared or asked for, or what the profile means by itself.
    pub fn promised_mode(&self) -> Option<ValidationMode> {
        let declared = self.rules.approval.as_ref().and_then(|approval| approval.mode);
        declared.or_else(|| self.rules.profile.is_some().then(|| self.validation_mode()))
    }

    /// For each step, whether a mode asks people before it.
    pub fn asked_in(&self, mode: ValidationMode) -> Vec<bool> {
        let last = self.steps.len().saturating_sub(1);
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
                ValidationMode::FinalOnly => index == last && !matches!(step.work, Work::Approval(_)),
            }
        });
        each.collect()
    }

    /// The steps before which the promised mode asks and no `approval` step does. A gate answers for the next step that
    /// is asked about, and one with a condition for none: it may be skipped.
    pub fn unasked(&self) -> Vec<&str> {
        let Some(mode) = self.promised_mode() else { return Vec::new() };
        let mut gated = false;
        let mut unasked = Vec::new();
        for (step, asks) in self.steps.iter().zip(self.asked_in(mode)) {
            if matches!(step.work, Work::Approval(_)) {
                gated |= step.condition.is_none();
            } else if asks {
                unasked.extend((!gated).then_some(step.key.as_str()));
                gated = false;
            }
        }
        unasked
    }
}

/// What is wrong, in words that name the steps.
pub fn unasked_by(mode: ValidationMode, steps: &[&str]) -> String {
    const SHOWN_MAX: usize = 10;
    let mut shown: Vec<String> = steps.iter().take(SHOWN_MAX).map(|step| format!("`{step}`")).collect();
    if steps.len() > SHOWN_MAX {
        shown.push(format!("{} more", steps.len() - SHOWN_MAX));
    }
    format!("the validation mode `{mode}` asks people before {}, and no `approval` step does", shown.join(", "))
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

    fn gate(key: &str) -> StepSpec {
        StepSpec::new(key, Work::Approval(serde_json::from_str("{}").unwrap()))
    }

    fn unasked(mode: Option<ValidationMode>, profile: Option<&str>, steps: Vec<StepSpec>) -> Vec<String> {
        let mut plan = Plan::new("demo", steps);
        plan.rules.profile = profile.map(str::to_owned);
        plan.rules.approval = mode.map(|mode| ApprovalRules { mode: Some(mode), ..ApprovalRules::default() });
        plan.unasked().into_iter().map(str::to_owned).collect()
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
            ]
        };
        let of = |mode| unasked(Some(mode), None, steps());
        assert_eq!(of(ValidationMode::PerStep), ["first", "second", "drop", "last"]);
        assert_eq!(of(ValidationMode::PerPhase), ["first", "drop"]);
        assert_eq!(of(ValidationMode::CriticalOnly), ["drop", "last"]);
        assert_eq!(of(ValidationMode::FinalOnly), ["last"]);
        assert_eq!(unasked(None, None, steps()), Vec::<String>::new(), "nothing was promised");
        assert_eq!(unasked(None, Some("prod-critical"), steps()), of(ValidationMode::PerStep));
        assert_eq!(unasked(None, Some("dev-flex"), steps()), of(ValidationMode::CriticalOnly));
    }

    #[test]
    fn a_gate_answers_for_the_next_step_that_is_asked_about() {
        let per_step = |steps| unasked(Some(ValidationMode::PerStep), None, steps);
        let plain = |key: &str| task(key, |_| {});
        assert_eq!(per_step(vec![gate("g"), plain("a")]), Vec::<String>::new());
        assert_eq!(per_step(vec![gate("g"), plain("a"), plain("b")]), ["b"]);
        assert_eq!(per_step(vec![gate("g"), plain("a"), gate("h"), plain("b")]), Vec::<String>::new());
        let mut maybe = gate("g");
        maybe.condition = Some("inputs.sure".into());
        assert_eq!(per_step(vec![maybe, plain("a")]), ["a"], "a gate that may be skipped asks nobody for certain");
    }
}
