//! Waits: woken by a signal, or overtaken by the clock. Both go through the run's version, so exactly one wins.

use super::draft::Draft;
use super::{approve, assign, complete, fail, lost};
use crate::ids::SignalId;
use crate::json::Json;
use crate::machine::step::StepEvent;
use crate::plan::retry::{ErrorClass, StepError};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::run::{Phase, Wait, Wake};
use crate::state::{ApprovalState, Control, Reason, StepKind, TaskType};

/// A signal that has come.
pub(super) struct ReceivedSignal {
    pub signal: SignalId,
    pub payload: Json,
    pub broadcast: bool,
}

pub(super) fn wake(draft: &mut Draft<'_>, position: u32, heard: ReceivedSignal) -> Result<(), Rejection> {
    let ReceivedSignal { signal, payload, broadcast } = heard;
    // A timer is not woken by a signal.
    let waits = matches!(&draft.current().phase, Phase::WaitingSignal(wait) if wait.signal.is_some());
    if position != draft.position || !waits {
        let from =
            if (position as usize) < draft.len() { draft.step(position).state() } else { draft.current().state() };
        return Err(Rejection::InvalidTransition {
            run: draft.run.id,
            step: draft.key(position),
            from,
            event: StepEvent::Woken,
        });
    }
    draft.side.push(SideWrite::CloseWait { position });
    draft.side.push(SideWrite::ConsumeSignal { signal, position, broadcast });
    if draft.spec(position).kind() == StepKind::Wait {
        return complete::succeed(draft, position, StepEvent::Woken, payload);
    }
    let wake = Wake { task_type: TaskType::Signal, signal: Some(signal), payload: Some(payload) };
    let eligible_at = draft.now();
    draft.go(position, StepEvent::Woken, Phase::Ready { eligible_at, wake: Some(wake) })?;
    draft.emit(Event::StepReady { step: position, why: "signal".into(), signal: Some(signal) });
    Ok(())
}

/// Carries out what has become due. Refuses when nothing has: the timer looked too early, or came second.
pub(super) fn tick(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    let now = draft.now();
    // What is in doubt is settled first: no deadline says what became of it.
    let is_doubted = matches!(draft.current().phase, Phase::InDoubt { .. });
    let held = draft.control == Control::Canceling || draft.notes().restored || is_doubted;
    if draft.run.header.deadline_at.is_some_and(|at| at <= now) && draft.len() == draft.run.forward_len() && !held {
        let error = StepError::new(ErrorClass::Timeout, "RUN_DEADLINE", "the run has passed its deadline");
        return lost::fail_run(draft, Reason::Deadline, error);
    }
    if assign::is_due(draft) {
        return assign::tick(draft);
    }
    match draft.current().phase.clone() {
        Phase::WaitingSignal(wait) if wait.deadline_at.is_some_and(|at| at <= now) => timed_out(draft, &wait),
        Phase::WaitingApproval(approval) if approval.state == ApprovalState::Requested => {
            approve::clocks(draft, &approval)
        }
        phase => Err(Rejection::InvalidTransition {
            run: draft.run.id,
            step: draft.key(draft.position),
            from: phase.state(),
            event: StepEvent::TimedOut,
        }),
    }
}

fn timed_out(draft: &mut Draft<'_>, wait: &Wait) -> Result<(), Rejection> {
    let position = draft.position;
    let Some(awaited) = &wait.signal else {
        // A timer that has run is what the step waited for.
        return complete::succeed(draft, position, StepEvent::Woken, Json::null());
    };
    if !is_planted(Bug::WaitLeftOpen) {
        draft.side.push(SideWrite::CloseWait { position });
    }
    if draft.spec(position).kind() == StepKind::Wait {
        let message = format!("no signal `{}` for `{}` came in time", awaited.signal, awaited.key);
        let error = StepError::new(ErrorClass::Timeout, "WAIT_TIMEOUT", message);
        return fail::fail_step(draft, position, StepEvent::TimedOut, error, Reason::WaitTimeout);
    }
    let wake = Wake { task_type: TaskType::WaitingTimeout, signal: None, payload: None };
    let eligible_at = draft.now();
    draft.go(position, StepEvent::TimedOut, Phase::Ready { eligible_at, wake: Some(wake) })?;
    draft.emit(Event::StepReady { step: position, why: "timeout".into(), signal: None });
    Ok(())
}
