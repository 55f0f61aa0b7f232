//! Cancel: decided at once, so that nothing further starts; finished when the live attempt has ended.

use super::draft::Draft;
use super::{effect, fail, rollback};
use crate::limits;
use crate::machine::approval::ApprovalEvent;
use crate::machine::step::StepEvent;
use crate::plan::RollbackCondition;
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::run::{Cancellation, Phase};
use crate::state::{ApprovalState, Control, Reason, StepState};

pub(super) fn cancel(draft: &mut Draft<'_>, reason: String, rollback: bool) -> Result<(), Rejection> {
    if reason.len() > limits::REASON_BYTES_MAX {
        let (bytes, max) = (reason.len(), limits::REASON_BYTES_MAX);
        return Err(Rejection::TooLarge { what: "the reason", bytes, max });
    }
    let refuse = |why| Err(Rejection::InvalidRunState { run: draft.run.id, state: draft.run.state, why });
    if matches!(draft.control, Control::Canceling | Control::Canceled) {
        return refuse("it is being canceled already");
    }
    let rolling_back = draft.len() > draft.run.forward_len();
    // A request to undo a run that has ended may be withdrawn as long as it is not approved.
    let is_asking = draft.run.header.is_undo() && draft.current().state() == StepState::WaitingApproval;
    if rolling_back && draft.control != Control::Paused && !is_asking {
        return refuse("it is rolling back; pause it before it is canceled");
    }
    if rolling_back && rollback {
        return refuse("a rollback has begun already; resume it, or cancel the run without a rollback");
    }
    draft.looked_at();
    let (by, at) = (draft.who(), draft.now());
    draft.notes_mut().cancellation = Some(Cancellation { by, reason: reason.clone(), at, rollback });
    if draft.current().state() == StepState::Running && !is_planted(Bug::CancelForgetsAttempt) {
        draft.control = Control::Canceling;
        draft.emit(Event::RunCanceled { reason, done: false });
        return Ok(());
    }
    attempt_ended(draft)
}

/// No attempt is live any more: every unfinished step is canceled, and the rollback, if one was asked for, begins.
pub(super) fn attempt_ended(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    close_current(draft)?;
    for position in 0..draft.len() as u32 {
        if draft.step(position).state() == StepState::Pending {
            draft.go(position, StepEvent::RunCanceled, Phase::Canceled)?;
        }
    }
    let wants_rollback = draft.notes().cancellation.as_ref().is_some_and(|cancellation| cancellation.rollback);
    if wants_rollback && rollback::begin(draft, RollbackCondition::Manual, Reason::Requested) {
        if draft.notes().restored {
            draft.reason = Some(Reason::Restored);
            fail::pause(draft, "restored from a backup; look whether the rollback was done, then resume".to_owned());
        }
        return Ok(());
    }
    draft.control = Control::Canceled;
    let is_backout = |cancellation: &Cancellation| cancellation.reason == Reason::Backout.as_str();
    let is_backout = draft.notes().cancellation.as_ref().is_some_and(is_backout);
    draft.reason = Some(if is_backout { Reason::Backout } else { Reason::Requested });
    Ok(())
}

/// Cancels the step that the run stands at, with what hangs on it.
pub(super) fn close_current(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    let position = draft.position;
    if draft.current().state().is_finished() {
        return Ok(());
    }
    close_questions(draft);
    if let Some(receipt) = effect::given_up(draft) {
        effect::put(draft, position, *receipt);
    }
    let known_at = match draft.current().phase {
        Phase::InDoubt { known_at, .. } => Some(known_at),
        _ => None,
    };
    // What an earlier cancel has left, which began a rollback, is about another step.
    if draft.notes().doubt_known_at != known_at {
        draft.notes_mut().doubt_known_at = known_at;
    }
    draft.go(position, StepEvent::RunCanceled, Phase::Canceled)?;
    draft.emit(Event::StepCanceled { step: position });
    draft.record_done(position);
    rollback::left_unverified(draft, position)
}

/// Closes what the current step has open to the outside: an approval, a wait.
pub(super) fn close_questions(draft: &mut Draft<'_>) {
    let position = draft.position;
    match draft.current().phase.clone() {
        Phase::WaitingApproval(approval) if approval.state == ApprovalState::Requested => {
            let closed = approval.closed_by(ApprovalEvent::Canceled);
            draft.emit(Event::ApprovalResolved { step: position, approval: closed.id, status: closed.state });
            draft.side.push(SideWrite::PutApproval { position, approval: Box::new(closed) });
        }
        _ => close_wait(draft),
    }
}

/// Closes the wait that the current step has open, if it has one.
pub(super) fn close_wait(draft: &mut Draft<'_>) {
    if matches!(&draft.current().phase, Phase::WaitingSignal(wait) if wait.signal.is_some()) {
        draft.side.push(SideWrite::CloseWait { position: draft.position });
    }
}
