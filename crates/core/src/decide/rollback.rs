//! Rollback: steps appended behind the plan, newest effect first, each undoing one step.

use super::ask::{Occasion, StepBinding};
use super::draft::Draft;
use super::{activate, fail};
use crate::governance::judge::{Decision, Judged};
use crate::json::Json;
use crate::machine::step::{StepEvent, Verdict};
use crate::plan::{RollbackCondition, Work};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::event::Event;
use crate::run::undoing::{undo_spec, verify_spec};
use crate::run::{Compensation, Phase, Step};
use crate::state::{Control, Reason, StepState};
use crate::time::Timestamp;

/// The position that a rollback step undoes.
pub(super) fn undoes(draft: &Draft<'_>, position: u32) -> u32 {
    match draft.spec(position).work {
        Work::Rollback { undoes, .. } => undoes,
        _ => position,
    }
}

/// Appends the rollback steps and makes the first one ready. Answers false if there is nothing to undo.
pub(super) fn begin(draft: &mut Draft<'_>, condition: RollbackCondition, after: Reason) -> bool {
    begin_at(draft, 0, condition, after)
}

/// The same for the steps from a position on.
fn begin_at(draft: &mut Draft<'_>, from: u32, condition: RollbackCondition, after: Reason) -> bool {
    let mut undo = to_undo(draft, from, condition);
    if is_planted(Bug::RollbackInOrder) {
        undo.reverse();
    }
    if is_planted(Bug::RollbackLeavesOneOut) && undo.len() > 1 {
        undo.pop();
    }
    if undo.is_empty() {
        return false;
    }
    // What a lost attempt may still send must not come after its undoing. Of those that ended without their workers' word the run has
    // a note; the effect of an open intent may still happen whatever was reported.
    let eligible_at = match draft.run.current().phase {
        Phase::InDoubt { known_at, .. } => known_at.max(draft.now()),
        _ if draft.current().open_intent.is_some() => draft.settled_at(),
        _ => draft.given_up_at(),
    };
    let mut steps = Vec::with_capacity(undo.len());
    for position in undo {
        let spec = undo_spec(draft.spec(position), position).expect("only steps that declare a rollback are undone");
        let verify = verify_spec(draft.spec(position), position);
        steps.push(draft.add_step(spec, Step::default()));
        steps.extend(verify.map(|spec| draft.add_step(spec, Step::default())));
    }
    let first = steps[0];
    draft.emit(Event::RollbackStarted { steps });
    draft.notes_mut().after_rollback = Some(after);
    if condition == RollbackCondition::Manual {
        // A pause or a cancel that led here is over. A pause that a failing attempt ran into is not: nothing is
        // claimed until an operator resumes.
        draft.unpause();
        draft.control = Control::Active;
    }
    ready(draft, first, eligible_at);
    true
}

/// The run stands at a rollback step now, which begins once it has been judged. It has the iteration of what it undoes: another run of the chain may have
/// undone an earlier one, which was another effect.
fn ready(draft: &mut Draft<'_>, position: u32, eligible_at: Timestamp) {
    draft.position = position;
    draft.step_mut(position).iteration = draft.step(undoes(draft, position)).iteration;
    let eligible_at = draft.begins_at(position, eligible_at);
    draft.needs(position, Occasion::Rollback { eligible_at });
}

const DENIED: StepEvent = StepEvent::Activated(Verdict::Denied);

/// Goes on with the decision on what a rollback step is about to do.
pub(super) fn answered(
    draft: &mut Draft<'_>,
    position: u32,
    found: StepBinding,
    eligible_at: Timestamp,
) -> Result<(), Rejection> {
    let judged = match found {
        StepBinding::Broken(error) => {
            return fail::fail_step(draft, position, StepEvent::RunFailed, error, Reason::RollbackFailed);
        }
        StepBinding::Go(_, judged, _) => judged,
        StepBinding::ConditionFalse => None,
    };
    if let Some(judged) = &judged {
        draft.record_decision(judged.action(), judged.ruling());
    }
    match judged.as_ref().map(Judged::decision) {
        Some(Decision::Allow) => {
            draft.go(position, StepEvent::Activated(Verdict::Go), Phase::Ready { eligible_at, wake: None })
        }
        Some(Decision::NeedsApproval { reasons, terms }) => {
            let approval = activate::request_on(draft, terms, reasons);
            activate::ask(draft, position, StepEvent::Activated(Verdict::NeedsApproval), approval)
        }
        Some(Decision::Deny { reasons }) => activate::deny(draft, position, DENIED, reasons),
        Some(Decision::Undecided { why }) => activate::undecided(draft, position, DENIED, why),
        None => activate::deny(draft, position, DENIED, &[]),
    }
}

/// The step that stopped the run, if it may have had an effect, then those that have succeeded, newest first.
fn to_undo(draft: &Draft<'_>, from: u32, condition: RollbackCondition) -> Vec<u32> {
    (from..draft.run.forward_len() as u32)
        .rev()
        .filter(|position| draft.step(*position).is_undoable(draft.spec(*position), &draft.run.header, condition))
        .filter(|position| !draft.has_left_it_to_others(*position))
        .collect()
}

/// A rollback step is done: its step is rolled back, and the next one follows. Where the workflow says what shows that, the step
/// is rolled back once that has succeeded.
pub(super) fn step_succeeded(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    if is_verified_next(draft, position) {
        go_on(draft, position);
        return Ok(());
    }
    let verified = draft.spec(position).verifies_rollback() || has_been_read_back(draft, position);
    undone(draft, position, verified)?;
    go_on(draft, position);
    Ok(())
}

/// What would look at a rollback does not come any more, because the run is canceled: the rollback was carried out all the same, and
/// counts as one that nothing has looked at.
pub(super) fn left_unverified(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    let was_carried_out = || draft.step(position - 1).state() == StepState::Succeeded;
    if draft.spec(position).verifies_rollback() && was_carried_out() { undone(draft, position, false) } else { Ok(()) }
}

/// The step that this one is about was undone.
fn undone(draft: &mut Draft<'_>, position: u32, verified: bool) -> Result<(), Rejection> {
    let undone = undoes(draft, position);
    let state = draft.step(undone).state();
    if matches!(state, StepState::Canceled | StepState::Pending | StepState::Skipped) {
        // It stays what it is; that an earlier iteration of it was undone stands in the compensation log.
    } else {
        draft.go(undone, StepEvent::RollbackFinished, Phase::RolledBack)?;
        draft.emit(Event::StepReady { step: undone, why: "rolled_back".into(), signal: None });
        draft.record_done(undone);
    }
    note_compensation(draft, position, StepState::RolledBack, Some(verified));
    Ok(())
}

/// Whether the step behind this one looks if this one has taken effect.
fn is_verified_next(draft: &Draft<'_>, position: u32) -> bool {
    let next = position + 1;
    (next as usize) < draft.len() && draft.spec(next).verifies_rollback()
}

/// Whether the rollback step says that it has read its target back: a connector does, and a task may. What a command prints is no
/// such word.
fn has_been_read_back(draft: &Draft<'_>, position: u32) -> bool {
    let output = draft.step(position).output.as_ref().filter(|_| !draft.spec(position).is_command());
    output.and_then(|output| output.to_value().ok()).is_some_and(|output| output["verified"] == true)
}

/// Enters what became of a rollback, with the receipts of what it did.
pub(super) fn note_compensation(draft: &mut Draft<'_>, position: u32, outcome: StepState, verified: Option<bool>) {
    let (step, at) = (undoes(draft, position), draft.now());
    // What looks at a rollback stands right behind it.
    let by_step = position - u32::from(draft.spec(position).verifies_rollback());
    let notes = draft.notes_mut();
    let receipts = std::mem::take(&mut notes.undone_by);
    notes.compensation_log.push(Compensation { step, by_step, receipts, outcome, verified, at });
}

/// Readies the next rollback step, or ends the rollback and with it the run.
pub(super) fn go_on(draft: &mut Draft<'_>, position: u32) {
    let next = position + 1;
    if (next as usize) < draft.len() {
        ready(draft, next, draft.now());
        return;
    }
    draft.emit(Event::RollbackCompleted {});
    // A pause holds back what is still to be done, and nothing is.
    draft.unpause();
    let after = draft.notes_mut().after_rollback.take().unwrap_or(Reason::RolledBack);
    draft.reason = Some(after);
    if after == Reason::Requested {
        draft.control = Control::Canceled;
    }
}

/// An operator rolls the run back, all of it or down to a step.
pub(super) fn by_hand(draft: &mut Draft<'_>, reason: String, from: Option<u32>) -> Result<(), Rejection> {
    super::control::check_reason(&reason)?;
    let from = from.unwrap_or(0);
    if from as usize >= draft.run.forward_len() {
        return Err(Rejection::UnknownStep { run: draft.run.id, step: from.to_string() });
    }
    let refuse = |why| Err(Rejection::InvalidRunState { run: draft.run.id, state: draft.run.state, why });
    if draft.len() > draft.run.forward_len() {
        return refuse("a rollback has begun already");
    }
    if draft.current().state() == StepState::Running {
        return refuse("it cannot be rolled back while a step is running");
    }
    draft.looked_at();
    super::cancel::close_current(draft)?;
    begin_because(draft, from, reason)
}

/// A new run undoes what it has inherited from one that has ended.
pub(super) fn undo(draft: &mut Draft<'_>, reason: String, from: u32) -> Result<(), Rejection> {
    super::control::check_reason(&reason)?;
    begin_because(draft, from, reason)
}

fn begin_because(draft: &mut Draft<'_>, from: u32, reason: String) -> Result<(), Rejection> {
    // Beside what is noted about the caller, such as their key.
    let noted = draft.asked.by.metadata.as_ref().and_then(|noted| noted.decode().ok());
    let mut noted: serde_json::Map<String, serde_json::Value> = noted.unwrap_or_default();
    noted.insert("reason".to_owned(), reason.into());
    draft.asked.by.metadata = Json::of(&noted).ok();
    if !begin_at(draft, from, RollbackCondition::Manual, Reason::RolledBack) {
        return Err(Rejection::InvalidRunState {
            run: draft.run.id,
            state: draft.run.state,
            why: "none of its steps can be undone",
        });
    }
    Ok(())
}
