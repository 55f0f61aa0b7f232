//! The rules of governance that can be checked before anything runs.

use interlock_core::cost::check_unit;
use interlock_core::limits::WAIT_MAX;
use interlock_core::plan::rules::{PROFILES, StepPhase, ValidationMode, is_prod};
use interlock_core::plan::{BlastRadius, OnFailure};
use interlock_core::state::{EffectClass, StepKind};

use super::steps::{duration, quorum};
use crate::convert::{effect_of, has_inverse, radius_of};
use crate::definition::Definition;
use crate::diagnostic::{Code, Report};
use interlock_core::text::nearest::hint;

pub fn check(definition: &Definition, report: &mut Report) {
    profile(definition, report);
    approval(definition, report);
    limits(definition, report);
    phases(definition, report);
    let declared = definition.steps.iter().any(|step| step.rollback.is_some() || has_inverse(step));
    if definition.on_failure == Some(OnFailure::Rollback) && !declared {
        let message = "`on_failure: rollback` has no effect: no step declares a `rollback`";
        report.warning(Code::Ineffective, definition.name.span, message);
    }
}

fn profile(definition: &Definition, report: &mut Report) {
    let Some(profile) = &definition.profile else { return };
    if !PROFILES.contains(&&*profile.value) {
        report
            .warning(Code::UnknownProfile, profile.span, format!("`{}` is not a shipped profile", &*profile.value))
            .help(hint(&profile.value, PROFILES.iter().copied()));
    }
    if !is_prod(&profile.value) {
        return;
    }
    for step in definition.steps.iter() {
        let Some((kind, ..)) = step.kinds().next() else { continue };
        let may_invert = kind == StepKind::Connector && has_inverse(step);
        if effect_of(step, kind) != EffectClass::Read && step.rollback.is_none() && !may_invert {
            let message = format!("`{}` changes something and has no rollback", &**step.id);
            report.error(Code::MissingRollback, step.id.span, message).help(format!(
                "the profile `{}` demands one: add `rollback: {{ … }}`, or `effect: read` if it changes nothing",
                &*profile.value
            ));
        }
        if let Some(threshold) = step.auto_approve_threshold {
            let message = "nothing is approved without asking in production: the threshold has no effect";
            report.warning(Code::Ineffective, threshold.span, message);
        }
    }
}

fn approval(definition: &Definition, report: &mut Report) {
    let Some(approval) = &definition.approval else { return };
    quorum(approval.quorum, report);
    duration(approval.escalate_after, WAIT_MAX, report);
    duration(approval.expires_after, WAIT_MAX, report);
    if let (Some(escalate), Some(expires)) = (approval.escalate_after, approval.expires_after)
        && escalate.value >= expires.value
    {
        let message = "the reminder would come when the approval has expired already";
        report.warning(Code::Ineffective, escalate.span, message);
    }
    let Some(mode) = approval.mode.filter(|mode| mode.value == ValidationMode::FinalOnly) else { return };
    for step in definition.steps.iter() {
        let Some((kind, ..)) = step.kinds().next() else { continue };
        let radius = radius_of(step, kind);
        if radius > BlastRadius::Low {
            let message = format!("`final_only` is for blast radius low, and `{}` has {radius}", &**step.id);
            report.error(Code::FinalOnlyTooFar, mode.span, message).help(
                "use `critical_only`, `per_phase` or `per_step`; or declare `blast_radius: low` where it is true",
            );
            return;
        }
    }
}

fn limits(definition: &Definition, report: &mut Report) {
    let Some(limits) = &definition.limits else { return };
    for (field, limit) in [("concurrency", limits.concurrency), ("runs_per_min", limits.runs_per_min)] {
        if let Some(limit) = limit.filter(|limit| limit.value == 0) {
            report
                .error(Code::InvalidValue, limit.span, format!("with `{field}: 0` nothing could ever run"))
                .help("leave it out for no limit");
        }
    }
    if let Some(spend) = limits.spend.filter(|spend| !(0.0..=1e9).contains(&spend.value)) {
        report.error(Code::InvalidValue, spend.span, format!("{} is not an amount", spend.value));
    }
    if let Some(unit) = &limits.unit
        && let Err(what) = check_unit(&unit.value)
    {
        report.error(Code::InvalidValue, unit.span, what);
    }
}

/// Prechecks come first and postchecks last, for readers and for `per_phase`.
fn phases(definition: &Definition, report: &mut Report) {
    let mut reached = StepPhase::Prechecks;
    for step in definition.steps.iter() {
        let Some(phase) = step.phase else { continue };
        if phase.value < reached {
            let message = format!("`{}` comes after `{reached}` has begun", phase.value);
            report.warning(Code::PhaseOrder, phase.span, message).help("the order is prechecks, main, postchecks");
        }
        reached = reached.max(phase.value);
    }
}

/// Whether steps of this kind do anything outside.
pub const fn acts(kind: StepKind) -> bool {
    matches!(kind, StepKind::Task | StepKind::Command | StepKind::Connector | StepKind::Model | StepKind::Rollback)
}
