//! Attempts that end without a word from their worker: lost leases, timeouts, releases, deadlines.

use super::draft::Draft;
use super::{assign, cancel, complete, effect, fail, tried};
use crate::cost::Cost;
use crate::limits::{UNKNOWN_TASK_PAUSE, UNKNOWN_TASK_PAUSE_MAX};
use crate::machine::receipt::ReceiptEvent;
use crate::machine::step::StepEvent;
use crate::plan::retry::{ErrorClass, StepError, TASK_UNKNOWN};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::event::Event;
use crate::state::{Control, Reason, StepKind, StepState};
use crate::time::Millis;

/// The prefix of error codes with which the server, not the worker, ends an attempt.
pub(super) const RUN_CODES: &str = "RUN_";
/// The code of the error of an attempt whose step was given back, where there is one.
pub(super) const RELEASED: &str = "RELEASED";
/// Why a step is ready that was given back.
pub(super) const GIVEN_BACK: &str = "released";

/// The worker's session has died. By effect class: doubt where an unsafe effect may have happened, else another
/// try, charged to the budget.
pub(super) fn lease_expired(draft: &mut Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    charge_unreported(draft, position)?;
    draft.may_still_arrive(position);
    let error = StepError::new(ErrorClass::LeaseExpired, "LEASE_EXPIRED", "the worker was lost while it ran the step");
    if draft.control == Control::Canceling {
        // An open effect stays in doubt, where it is listed and can be settled after the end.
        draft.step_mut(position).last_error = Some(error);
        return cancel::attempt_ended(draft);
    }
    let lost_with_directory = assign::step_lost(draft, position);
    if draft.step(position).open_intent.is_some() && !is_planted(Bug::BlindRetry) {
        return fail::doubt(draft, position, error);
    }
    if lost_with_directory {
        draft.step_mut(position).failures += 1;
        return stop_without_directory(draft, position, StepEvent::LeaseExpiredForGood, error);
    }
    let exhausted = draft.spec(position).retry_policy().is_exhausted(draft.step(position).failures);
    draft.step_mut(position).failures += 1;
    if exhausted {
        return fail::fail_step(draft, position, StepEvent::LeaseExpiredForGood, error, Reason::StepFailed);
    }
    if let Some(over) = fail::spend_is_over(draft, position) {
        let error = fail::also(&error, &over);
        return fail::fail_step(draft, position, StepEvent::LeaseExpiredForGood, error, Reason::SpendExhausted);
    }
    let eligible_at = draft.now();
    let wake = fail::wake_of(draft, position);
    draft.go(position, StepEvent::LeaseExpired, Phase::Ready { eligible_at, wake })?;
    tried::ended(draft, position);
    draft.step_mut(position).last_error = Some(error.clone());
    let cost = draft.cost.take();
    draft.emit(Event::StepRetrying { step: position, attempt, eligible_at, error, cost });
    Ok(())
}

/// An attempt has ended, and its worker has not said what it has cost. A model may have been asked, and is paid for then: its
/// price is not known, so a run whose spending is limited counts as having spent all of it.
fn charge_unreported(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    if draft.spec(position).kind() != StepKind::Model {
        return Ok(());
    }
    complete::charge(draft, position, Some(Box::new(Cost { unpriced: true, ..Cost::default() })))
}

/// The directory of the run went with its worker. What the lost command has left in it, the next one might rely on: the run
/// does not go on by itself.
pub(super) fn stop_without_directory(
    draft: &mut Draft<'_>,
    position: u32,
    event: StepEvent,
    error: StepError,
) -> Result<(), Rejection> {
    fail::end_step(draft, position, event, error)?;
    draft.reason = Some(Reason::StepFailed);
    let key = &draft.spec(position).key;
    let why = format!("the worker that had the run was lost while it ran step {key}, and with it the run's directory");
    fail::pause(draft, why);
    Ok(())
}

/// Stuck code in a live session.
pub(super) fn step_timeout(draft: &mut Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    let due = matches!(draft.step(position).phase, Phase::Running { timeout_at: Some(at), .. } if at <= draft.now());
    if !due {
        let from = draft.step(position).state();
        let event = StepEvent::TimedOut;
        return Err(Rejection::InvalidTransition { run: draft.run.id, step: draft.key(position), from, event });
    }
    charge_unreported(draft, position)?;
    let limit = draft.run.spec(position).timeout.map_or_else(String::new, |limit| format!(" of {} ms", limit.0));
    let what = format!("the step ran longer than its timeout{limit}, and its worker did not end it");
    let error = StepError::new(ErrorClass::Timeout, "STEP_TIMEOUT", what);
    draft.attempt_lives = true;
    draft.may_still_arrive(position);
    if draft.control == Control::Canceling {
        draft.step_mut(position).last_error = Some(error);
        return cancel::attempt_ended(draft);
    }
    fail::try_again(draft, position, error, None)
}

/// The worker gives the step back, and has ended what it ran. That is no failure; what it has cost counts all the same, and what
/// it had sent by then may still arrive.
pub(super) fn release(
    draft: &mut Draft<'_>,
    position: u32,
    attempt: u32,
    cost: Option<Box<Cost>>,
) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    match cost {
        Some(cost) => complete::charge(draft, position, Some(cost))?,
        None => charge_unreported(draft, position)?,
    }
    draft.may_still_arrive(position);
    give_back(draft, position, attempt)
}

/// The worker has left the attempt out of its heartbeats. That is no failure either, but it may still be at it.
pub(super) fn left_out(draft: &mut Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    charge_unreported(draft, position)?;
    draft.attempt_lives = true;
    draft.may_still_arrive(position);
    give_back(draft, position, attempt)
}

fn give_back(draft: &mut Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    if draft.control == Control::Canceling {
        return cancel::attempt_ended(draft);
    }
    if draft.step(position).open_intent.is_some() {
        // What it has begun may go on behind it, whatever it has said.
        draft.attempt_lives = true;
        let error = StepError::new(ErrorClass::LeaseExpired, RELEASED, "the step was given back with an open effect");
        return fail::doubt(draft, position, error);
    }
    if let Some(over) = fail::spend_is_over(draft, position) {
        draft.step_mut(position).failures += 1;
        let error = StepError::new(ErrorClass::LeaseExpired, RELEASED, "the step was given back");
        let error = fail::also(&error, &over);
        return fail::fail_step(draft, position, StepEvent::FailedForGood, error, Reason::SpendExhausted);
    }
    let eligible_at = draft.now();
    let wake = fail::wake_of(draft, position);
    draft.go(position, StepEvent::Released, Phase::Ready { eligible_at, wake })?;
    tried::ended(draft, position);
    if let Some(cost) = draft.cost.take().filter(|cost| cost.unpriced || cost.micros > 0) {
        // The event that tells of a cost.
        let what = "the step was given back after it had cost something";
        let error = StepError::new(ErrorClass::LeaseExpired, RELEASED, what);
        draft.step_mut(position).last_error = Some(error.clone());
        draft.emit(Event::StepRetrying { step: position, attempt, eligible_at, error, cost: Some(cost) });
        return Ok(());
    }
    // What an earlier attempt reported must not pass for a report of this one.
    draft.step_mut(position).last_error = None;
    draft.emit(Event::StepReady { step: position, why: GIVEN_BACK.into(), signal: None });
    Ok(())
}

/// The claim has never reached its worker, so nothing was done.
pub(super) fn undelivered(draft: &mut Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    effect::settle_claim(draft, position, ReceiptEvent::Failed);
    tried::never_began(draft, position);
    give_back(draft, position, attempt)
}

/// The worker does not know the task: another may, so the step is given back uncharged. It comes back to the same worker
/// where that is the only one, so the pause grows.
pub(super) fn unknown_task(draft: &mut Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    // A worker that does not know the task has done nothing.
    effect::settle_claim(draft, position, ReceiptEvent::Failed);
    tried::never_began(draft, position);
    if draft.control == Control::Canceling || draft.step(position).open_intent.is_some() {
        return give_back(draft, position, attempt);
    }
    let task = draft.spec(position).task_name().unwrap_or_default().to_owned();
    let message = format!("the worker that took the step does not know the task `{task}`");
    let error = StepError::new(ErrorClass::Unavailable, TASK_UNKNOWN, message);
    let given_back = attempt.saturating_sub(draft.step(position).failures).clamp(1, 10) - 1;
    let pause = Millis(UNKNOWN_TASK_PAUSE.0 << given_back).min(UNKNOWN_TASK_PAUSE_MAX);
    let eligible_at = draft.now() + pause;
    let wake = fail::wake_of(draft, position);
    draft.go(position, StepEvent::Released, Phase::Ready { eligible_at, wake })?;
    tried::ended(draft, position);
    draft.step_mut(position).last_error = Some(error.clone());
    draft.emit(Event::StepRetrying { step: position, attempt, eligible_at, error, cost: None });
    Ok(())
}

/// The error under a code of the run (`RUN_…`), so that the worker's own late report is not taken for recorded.
fn ours(reason: Reason, error: StepError) -> StepError {
    let code = format!("{RUN_CODES}{}", reason.as_str().to_uppercase());
    let message = if error.code == code { error.message } else { format!("{}: {}", error.code, error.message) };
    StepError::new(error.class, &code, message)
}

/// The run's own deadline, a failed assignment, a backout: the current step fails and the run with it.
pub(super) fn fail_run(draft: &mut Draft<'_>, reason: Reason, error: StepError) -> Result<(), Rejection> {
    // Also while what it did is being undone: the caller who canceled it was told that it is being canceled.
    if draft.notes().cancellation.is_some() {
        let (run, state) = (draft.run.id, draft.run.state);
        let why = "it is being canceled, and does not fail any more";
        return Err(Rejection::InvalidRunState { run, state, why });
    }
    let position = draft.position;
    let running = draft.current().state() == StepState::Running;
    // Nor may this error be taken for the report of an attempt that the server has ended before.
    let unreported = draft.current().last_error.as_ref().is_some_and(complete::ended_by_us);
    let error = if running || unreported { ours(reason, error) } else { error };
    draft.attempt_lives = running;
    if running {
        charge_unreported(draft, position)?;
        draft.may_still_arrive(position);
    }
    if running && draft.current().open_intent.is_some() {
        return fail::doubt(draft, position, error);
    }
    draft.unpause();
    if draft.current().state() == StepState::Failed {
        // It failed before and waits for a directive: this is the directive.
        draft.reason = Some(reason);
        return Ok(());
    }
    if running {
        draft.step_mut(position).failures += 1;
        return fail::fail_step(draft, position, StepEvent::FailedForGood, error, reason);
    }
    if draft.run.is_queued() {
        // Nothing has begun, so there is nothing to undo, and no directive could give it the subject.
        draft.reason = Some(reason);
        return fail::end_step(draft, position, StepEvent::RunFailed, error);
    }
    cancel::close_questions(draft);
    fail::fail_step(draft, position, StepEvent::RunFailed, error, reason)
}
