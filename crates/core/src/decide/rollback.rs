//! Rollback: steps appended behind the plan, newest effect first, each undoing one step.

use super::draft::Draft;
use crate::event::Event;
use crate::json::Json;
use crate::limits;
use crate::machine::step::{StepEvent, Verdict};
use crate::plan::{RollbackCondition, StepSpec, Work};
use crate::rejection::Rejection;
use crate::run::{Compensation, Phase, Step};
use crate::state::{Control, EffectClass, Reason, StepState};
use crate::time::Timestamp;

/// The position that a rollback step undoes.
pub(super) fn undoes(draft: &Draft<'_>, position: u32) -> u32 {
    match draft.spec(position).work {
        Work::Rollback { undoes, .. } => undoes,
        _ => position,
    }
}

/// Appends the rollback steps and makes the first one ready. Answers false if there is nothing to undo.
pub(super) fn begin(
    draft: &mut Draft<'_>,
    condition: RollbackCondition,
    after: Reason,
) -> Result<bool, Rejection> {
    let undo = to_undo(draft, condition);
    if undo.is_empty() {
        return Ok(false);
    }
    let eligible_at = first_eligible_at(draft);
    let mut steps = Vec::with_capacity(undo.len());
    for position in undo {
        let spec = rollback_spec(draft, position);
        let step = Step {
            input: Some(rollback_input(draft, position)),
            ..Step::default()
        };
        steps.push(draft.add_step(spec, step));
    }
    let first = steps[0];
    draft.emit(Event::RollbackStarted { steps });
    draft.notes_mut().after_rollback = Some(after);
    // A pause that led here is over: the rollback is the directive.
    draft.control = Control::Active;
    draft.position = first;
    draft.go(
        first,
        StepEvent::Activated(Verdict::Go),
        Phase::Ready {
            eligible_at,
            wake: None,
        },
    )?;
    Ok(true)
}

/// The step that stopped the run, if it may have had an effect, then the succeeded ones, newest first.
fn to_undo(draft: &Draft<'_>, condition: RollbackCondition) -> Vec<u32> {
    (0..draft.run.forward_len() as u32)
        .rev()
        .filter(|position| {
            let (spec, step) = (draft.spec(*position), draft.step(*position));
            let declared = spec
                .rollback
                .as_ref()
                .is_some_and(|rollback| rollback.conditions.contains(&condition));
            let may_have_acted = match step.state() {
                StepState::Succeeded | StepState::InDoubt => true,
                StepState::Failed | StepState::Canceled => {
                    step.attempt > 0 && spec.effect_class() != EffectClass::Read
                }
                _ => false,
            };
            declared && may_have_acted
        })
        .collect()
}

/// A failed attempt may still be running on a worker that has not heard of it: its lease must have passed.
fn first_eligible_at(draft: &Draft<'_>) -> Timestamp {
    let was_running = draft
        .run
        .steps
        .get(draft.run.position as usize)
        .is_some_and(|step| step.state() == StepState::Running);
    let by_clock = draft.asked.by.initiator == crate::state::Initiator::Timeout;
    if was_running && by_clock {
        draft.now() + limits::SESSION_LEASE
    } else {
        draft.now()
    }
}

fn rollback_spec(draft: &Draft<'_>, position: u32) -> StepSpec {
    let undone = draft.spec(position);
    let rollback = undone
        .rollback
        .as_ref()
        .expect("only steps that declare a rollback are undone");
    let work = Work::Rollback {
        undoes: position,
        handler: rollback.handler.clone(),
        with: rollback.with.clone(),
    };
    let mut spec = StepSpec::new(format!("rollback:{}", undone.key), work);
    spec.queue.clone_from(&undone.queue);
    spec.timeout = undone.timeout;
    spec.retry.clone_from(&undone.retry);
    spec.effect = undone.effect;
    spec
}

/// What a rollback handler gets: what the step was given, what it answered, and the rollback's own `with`.
fn rollback_input(draft: &Draft<'_>, position: u32) -> Json {
    let step = draft.step(position);
    let undone = draft.spec(position);
    let with = undone
        .rollback
        .as_ref()
        .and_then(|rollback| rollback.with.clone())
        .unwrap_or_else(Json::null);
    let output = step.output.clone().unwrap_or_else(Json::null);
    let input = step
        .input
        .clone()
        .unwrap_or_else(|| draft.run.header.inputs.clone());
    let text = format!(
        r#"{{"input":{},"output":{},"with":{}}}"#,
        input.as_str(),
        output.as_str(),
        with.as_str()
    );
    Json::trusted(text)
}

/// A rollback step is done: its step is rolled back, and the next one follows.
pub(super) fn step_succeeded(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    let undone = undoes(draft, position);
    if draft.step(undone).state() == StepState::Canceled {
        // Canceled is final; what was undone stands in the compensation log.
    } else {
        draft.go(undone, StepEvent::RollbackFinished, Phase::RolledBack)?;
        draft.emit(Event::StepReady {
            step: undone,
            why: "rolled_back".into(),
            signal: None,
        });
        draft.record_done(undone);
    }
    let at = draft.now();
    draft.notes_mut().compensation_log.push(Compensation {
        step: undone,
        by_step: position,
        receipt: None,
        outcome: StepState::RolledBack,
        at,
    });
    go_on(draft, position)
}

/// Readies the next rollback step, or ends the rollback and with it the run.
pub(super) fn go_on(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    let next = position + 1;
    if (next as usize) < draft.len() {
        draft.position = next;
        let eligible_at = draft.now();
        let event = StepEvent::Activated(Verdict::Go);
        return draft.go(
            next,
            event,
            Phase::Ready {
                eligible_at,
                wake: None,
            },
        );
    }
    draft.emit(Event::RollbackCompleted {});
    let after = draft
        .notes_mut()
        .after_rollback
        .take()
        .unwrap_or(Reason::RolledBack);
    draft.reason = Some(after);
    if after == Reason::Requested {
        draft.control = Control::Canceled;
    }
    Ok(())
}

/// An operator rolls the run back.
pub(super) fn by_hand(draft: &mut Draft<'_>, reason: String) -> Result<(), Rejection> {
    let refuse = |verb| {
        Err(Rejection::InvalidRunState {
            run: draft.run.id,
            state: draft.run.state,
            verb,
        })
    };
    if draft.len() > draft.run.forward_len() {
        return refuse("start a second rollback of");
    }
    if draft.current().state() == StepState::Running {
        return refuse("roll back, while a step is running,");
    }
    super::cancel::close_current(draft)?;
    let metadata = Json::of(&serde_json::json!({ "reason": reason })).ok();
    draft.asked.by.metadata = draft.asked.by.metadata.take().or(metadata);
    if !begin(draft, RollbackCondition::Manual, Reason::RolledBack)? {
        return Err(Rejection::InvalidRunState {
            run: draft.run.id,
            state: draft.run.state,
            verb: "find a step to undo in",
        });
    }
    Ok(())
}
