//! What a start may ask for beyond what its workflow says: another profile, another mode. Both may only be stricter,
//! so that the caller who starts a run cannot weaken the workflow's rules.

use serde::Serialize;

use crate::plan::rules::{ApprovalRules, PROFILES, ValidationMode, is_prod};
use crate::plan::{BlastRadius, Plan, StepSpec};
use crate::state::EffectClass;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Stricter {
    pub profile: Option<String>,
    pub mode: Option<ValidationMode>,
}

impl Stricter {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Plan {
    /// The furthest that any of its steps reaches.
    pub fn blast_radius(&self) -> BlastRadius {
        self.steps.iter().map(StepSpec::blast_radius).max().unwrap_or(BlastRadius::Low)
    }

    /// When people are asked: as declared, else every step in production and where a step reaches far, else the
    /// critical ones.
    pub fn validation_mode(&self) -> ValidationMode {
        let declared = self.rules.approval.as_ref().and_then(|approval| approval.mode);
        declared.unwrap_or(if self.rules.is_prod() || self.blast_radius() == BlastRadius::High {
            ValidationMode::PerStep
        } else {
            ValidationMode::CriticalOnly
        })
    }

    /// The plan under stricter rules, or why it cannot have those that are asked for.
    pub fn under(&self, asked: &Stricter) -> Result<Self, String> {
        let mut plan = self.clone();
        if let Some(profile) = &asked.profile {
            check_profile(self, profile)?;
            plan.rules.profile = Some(profile.clone());
        }
        if let Some(mode) = asked.mode {
            check_mode(&plan, mode)?;
            plan.rules.approval.get_or_insert_with(ApprovalRules::default).mode = Some(mode);
        }
        Ok(plan)
    }
}

fn check_profile(plan: &Plan, asked: &str) -> Result<(), String> {
    let declared = plan.rules.profile.as_deref();
    if declared == Some(asked) {
        return Ok(());
    }
    let rank = |profile: &str| PROFILES.iter().position(|known| *known == profile);
    let Some(wanted) = rank(asked) else {
        let known = PROFILES.join(", ");
        return Err(format!(
            "there is no profile `{}`; expected one of {known}",
            asked.chars().take(80).collect::<String>()
        ));
    };
    if let Some(declared) = declared
        && rank(declared).is_none_or(|own| wanted > own)
    {
        return Err(format!(
            "the workflow's profile is `{declared}`, and `{asked}` is not stricter; leave it out, or ask for a stricter one"
        ));
    }
    let cannot_go_back = |step: &&StepSpec| step.effect_class() != EffectClass::Read && step.rollback.is_none();
    match plan.steps.iter().find(cannot_go_back) {
        Some(step) if is_prod(asked) => Err(format!(
            "the profile `{asked}` demands a rollback for everything that changes something, and step `{}` has none",
            step.key
        )),
        _ => Ok(()),
    }
}

fn check_mode(plan: &Plan, asked: ValidationMode) -> Result<(), String> {
    let own = plan.validation_mode();
    // The names stand in their order, the strictest first.
    if asked > own {
        return Err(format!(
            "the validation mode here is `{own}`, and `{asked}` is not stricter; leave it out, or ask for a stricter one"
        ));
    }
    if asked == ValidationMode::FinalOnly && plan.blast_radius() > BlastRadius::Low {
        return Err(format!("`{asked}` is for blast radius low, and this workflow's is {}", plan.blast_radius()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(profile: Option<&str>, mode: Option<ValidationMode>) -> Plan {
        let mut plan = Plan::new("demo", vec![StepSpec::task("a", "t")]);
        plan.rules.profile = profile.map(str::to_owned);
        plan.rules.approval = mode.map(|mode| ApprovalRules { mode: Some(mode), ..ApprovalRules::default() });
        plan
    }

    fn asked(profile: Option<&str>, mode: Option<ValidationMode>) -> Stricter {
        Stricter { profile: profile.map(str::to_owned), mode }
    }

    #[test]
    fn a_profile_may_only_become_stricter() {
        for (own, wanted, may) in [
            (None, "dev-flex", true),
            (Some("staging-standard"), "staging-standard", true),
            (Some("staging-standard"), "dev-flex", false),
            (Some("dev-flex"), "staging-standard", true),
            (Some("ours"), "ours", true),
            (Some("ours"), "dev-flex", false),
            (None, "nowhere", false),
        ] {
            let found = plan(own, None).under(&asked(Some(wanted), None));
            assert_eq!(found.is_ok(), may, "{own:?} {wanted}: {found:?}");
            if let Ok(found) = found {
                assert_eq!(found.rules.profile.as_deref(), Some(wanted));
            }
        }
    }

    #[test]
    fn production_demands_a_way_back() {
        let error = plan(None, None).under(&asked(Some("prod-standard"), None)).unwrap_err();
        assert!(error.contains("`a`"), "{error}");
        let mut harmless = plan(None, None);
        harmless.steps[0].effect = Some(EffectClass::Read);
        let found = harmless.under(&asked(Some("prod-standard"), None)).unwrap();
        assert_eq!(found.validation_mode(), ValidationMode::PerStep);
    }

    #[test]
    fn a_mode_may_only_become_stricter() {
        use ValidationMode::{CriticalOnly, FinalOnly, PerPhase, PerStep};
        for (own, wanted, may) in [
            (None, PerStep, true),
            (None, CriticalOnly, true),
            (None, FinalOnly, false),
            (Some(PerPhase), CriticalOnly, false),
            (Some(PerPhase), PerStep, true),
        ] {
            let found = plan(None, own).under(&asked(None, Some(wanted)));
            assert_eq!(found.is_ok(), may, "{own:?} {wanted}: {found:?}");
        }
        let far = plan(None, Some(FinalOnly));
        assert!(far.under(&asked(None, Some(FinalOnly))).is_err(), "a task reaches further than low");
    }

    #[test]
    fn who_asks_for_nothing_gets_the_plan_as_it_is() {
        let plan = plan(Some("dev-flex"), None);
        assert_eq!(plan.under(&Stricter::default()), Ok(plan));
    }
}
