//! Failure: another try while the class and the budget allow it, else the end of the step, and then the workflow's
//! rule: fail, pause, or roll back.

use super::draft::Draft;
use super::{effect, rollback, tried};
use crate::machine::step::StepEvent;
use crate::plan::retry::{ErrorClass, JitterSeed, ROLLBACK_UNVERIFIED, StepError};
use crate::plan::{OnFailure, RollbackCondition};
use crate::planted::{Bug, is_planted};
use crate::rejection::{Rejection, SPEND_EXHAUSTED, WRITES_EXHAUSTED};
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::run::{Pause, Phase};
use crate::state::{Control, Reason, StepKind, StepState};
use crate::time::Millis;

/// An attempt has failed. An unsafe effect whose outcome is unknown is never tried again blindly.
pub(super) fn try_again(
    draft: &mut Draft<'_>,
    position: u32,
    error: StepError,
    backoff: Option<Millis>,
) -> Result<(), Rejection> {
    if draft.step(position).open_intent.is_some() {
        return doubt(draft, position, error);
    }
    let policy = draft.spec(position).retry_policy();
    let step = draft.step(position);
    let (attempt, failures) = (step.attempt, step.failures);
    let spent = writes_are_spent(draft, &error);
    let over = spend_is_over(draft, position);
    let worthwhile = error.class.is_retryable() && !spent && over.is_none();
    let retry = worthwhile && !policy.is_exhausted(failures) && draft.control != Control::Canceling;
    if !is_planted(Bug::BudgetNotCharged) {
        draft.step_mut(position).failures += 1;
    }
    if !retry {
        let (reason, error) = match over {
            _ if spent => (Reason::WritesExhausted, error),
            Some(over) if error.class.is_retryable() => (Reason::SpendExhausted, also(&error, &over)),
            _ => (reason_of(error.class), error),
        };
        return fail_step(draft, position, StepEvent::FailedForGood, error, reason);
    }
    let seed = JitterSeed { run: draft.run.id, position, attempt };
    let delay = backoff.unwrap_or_else(|| policy.backoff.delay(failures + 1, seed)).min(crate::limits::BACKOFF_MAX);
    let mut eligible_at = draft.now() + delay;
    if let Some(deadline) = draft.run.header.deadline_at {
        eligible_at = eligible_at.min(deadline.max(draft.now()));
    }
    draft.go(
        position,
        StepEvent::FailedRetryable { ask: false },
        Phase::Ready { eligible_at, wake: wake_of(draft, position) },
    )?;
    draft.step_mut(position).last_error = Some(error.clone());
    tried::ended(draft, position);
    let cost = draft.cost.take();
    draft.emit(Event::StepRetrying { step: position, attempt, eligible_at, error, cost });
    Ok(())
}

/// Why a run ends whose attempt has failed by itself. Only a decision denies, and only a vote rejects.
fn reason_of(class: ErrorClass) -> Reason {
    match class {
        ErrorClass::Denied if is_planted(Bug::RefusalIsDecision) => Reason::PolicyDenied,
        ErrorClass::Rejected if is_planted(Bug::RefusalIsDecision) => Reason::ApprovalRejected,
        _ => Reason::StepFailed,
    }
}

/// The error of an attempt, with why there is no other one.
pub(super) fn also(error: &StepError, why: &StepError) -> StepError {
    StepError::new(error.class, &error.code, format!("{}; {}", error.message, why.message))
}

/// Whether the attempt failed because the run may not write any more, which no other try could change.
fn writes_are_spent(draft: &Draft<'_>, error: &StepError) -> bool {
    let spent = draft.run.plan.writes_max.is_some_and(|max| draft.notes().writes >= max);
    spent && error.code == WRITES_EXHAUSTED
}

/// Why nothing may be spent any more on this step, where the run has spent what its workflow lets it. What only reads goes
/// on, and what was done can always be undone.
pub(super) fn spend_is_over(draft: &Draft<'_>, position: u32) -> Option<StepError> {
    let max = draft.run.plan.rules.spend_max_micros?;
    let (spent, spec) = (draft.notes().spent_micros, draft.spec(position));
    if spent < max || !spec.is_governed() || spec.kind() == StepKind::Rollback {
        return None;
    }
    let amount = |micros: u64| micros as f64 / 1e6;
    let unit = draft.run.plan.rules.spend_unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
    let (spent, max) = (amount(spent), amount(max));
    let message = if draft.notes().unpriced {
        format!(
            "the price of something that the run has used is not known, so it counts as having spent all of the {max}{unit} \
             that `limits.spend` allows; write a model's price into the worker's file of connections (`--connectors`)"
        )
    } else {
        format!("the run has spent {spent} of the {max}{unit} that `limits.spend` allows")
    };
    Some(StepError::new(ErrorClass::Terminal, SPEND_EXHAUSTED, message))
}

/// A retry runs for the same cause: a step that a signal woke gets the signal again.
pub(super) fn wake_of(draft: &Draft<'_>, position: u32) -> Option<crate::run::Wake> {
    match &draft.step(position).phase {
        Phase::Running { wake, .. } => wake.clone(),
        _ => None,
    }
}

/// An effect was sent and it is not known whether it happened: the run stops for a probe or a person.
pub(super) fn doubt(draft: &mut Draft<'_>, position: u32, error: StepError) -> Result<(), Rejection> {
    let id = draft.step(position).open_intent.expect("only a step with an open intent can be in doubt");
    let wake = wake_of(draft, position);
    let known_at = draft.settled_at();
    draft.go(position, StepEvent::LeaseExpiredInDoubt, Phase::InDoubt { receipt: id, known_at })?;
    let step = draft.step_mut(position);
    step.last_error = Some(error.clone());
    step.failures += 1;
    step.interrupted = wake;
    let attempt = step.attempt;
    draft.reason = Some(Reason::InDoubt);
    draft.emit(Event::StepInDoubt { step: position, attempt, receipt: id, error: Some(error) });
    if let Some(receipt) = effect::given_up(draft) {
        draft.side.push(SideWrite::PutReceipt(receipt));
    }
    Ok(())
}

/// The step has failed for good; what the run does follows `on_failure`.
pub(super) fn fail_step(
    draft: &mut Draft<'_>,
    position: u32,
    event: StepEvent,
    error: StepError,
    reason: Reason,
) -> Result<(), Rejection> {
    end_step(draft, position, event, error)?;
    if draft.spec(position).kind() == StepKind::Rollback {
        rollback_failed(draft, position);
        return Ok(());
    }
    if draft.control == Control::Canceling {
        return Ok(());
    }
    draft.reason = Some(reason);
    match on_failure(draft, position) {
        OnFailure::Fail => Ok(()),
        // No directive could help a run that is past its deadline.
        OnFailure::Pause if reason == Reason::Deadline => Ok(()),
        OnFailure::Pause => {
            pause(draft, format!("step {} has failed", draft.spec(position).key));
            Ok(())
        }
        OnFailure::Rollback => {
            rollback::begin(draft, RollbackCondition::Failure, Reason::RolledBack);
            Ok(())
        }
    }
}

/// The step has failed; what the run does is up to the caller.
pub(super) fn end_step(
    draft: &mut Draft<'_>,
    position: u32,
    event: StepEvent,
    error: StepError,
) -> Result<(), Rejection> {
    draft.go(position, event, Phase::Failed)?;
    let step = draft.step_mut(position);
    step.last_error = Some(error.clone());
    let attempt = step.attempt;
    let cost = draft.cost.take();
    draft.emit(Event::StepFailed { step: position, attempt, error, cost });
    draft.record_done(position);
    Ok(())
}

pub(super) fn on_failure(draft: &Draft<'_>, position: u32) -> OnFailure {
    let declared = draft.spec(position).on_failure.or(draft.run.plan.on_failure);
    declared.unwrap_or_else(|| {
        let undoable = |position: u32| draft.spec(position).rollback.is_some() && draft.step(position).attempt > 0;
        if (0..=position).any(undoable) { OnFailure::Rollback } else { OnFailure::Fail }
    })
}

/// Stops the run by a rule: no person has paused it, whoever's request led there.
pub(super) fn pause(draft: &mut Draft<'_>, reason: String) {
    pause_by(draft, None, reason);
}

pub(super) fn pause_by(draft: &mut Draft<'_>, by: Option<String>, reason: String) {
    draft.control = Control::Paused;
    let at = draft.now();
    draft.notes_mut().pause = Some(Pause { by, reason: reason.clone(), at });
    draft.emit(Event::RunPaused { reason });
}

/// A rollback that fails is loud: the run pauses and says so. So is one that was carried out and cannot be seen.
fn rollback_failed(draft: &mut Draft<'_>, position: u32) {
    let verifies = draft.spec(position).verifies_rollback();
    let is_code = |error: &StepError| error.code == ROLLBACK_UNVERIFIED;
    let was_carried_out = verifies || draft.step(position).last_error.as_ref().is_some_and(is_code);
    rollback::note_compensation(draft, position, StepState::Failed, was_carried_out.then_some(false));
    if draft.control == Control::Canceling {
        // The rollback is given up anyway.
        return;
    }
    let key = draft.spec(rollback::undoes(draft, position)).key.clone();
    let (reason, what) = if verifies {
        (Reason::RollbackUnverified, "was carried out, and what verifies it has failed: look at the target by hand")
    } else if was_carried_out {
        (Reason::RollbackUnverified, "was carried out, and its target does not show it")
    } else {
        (Reason::RollbackFailed, "has failed")
    };
    draft.reason = Some(reason);
    pause(draft, format!("the rollback of step {key} {what}"));
}
