//! The operator's directives: pause, resume, retry, skip, restart from a step.

use super::ask::{Again, Occasion, StepBinding};
use super::draft::Draft;
use super::guard::{self, Guard};
use super::{activate, cancel, fail, rollback};
use crate::governance::judge::Decision;
use crate::json::Json;
use crate::limits;
use crate::machine::step::StepEvent;
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::approval::{Approval, Terms, Voter};
use crate::run::event::Event;
use crate::run::{Phase, Refused};
use crate::state::{ApprovalState, Control, Reason, StepKind, StepState};
use crate::text::article::with_article;

fn refuse(draft: &Draft<'_>, why: &'static str) -> Rejection {
    Rejection::InvalidRunState { run: draft.run.id, state: draft.run.state, why }
}

pub(super) fn pause(draft: &mut Draft<'_>, reason: String) -> Result<(), Rejection> {
    check_reason(&reason)?;
    if draft.control != Control::Active {
        return Err(refuse(draft, "only an active run can be paused"));
    }
    let by = draft.who();
    fail::pause_by(draft, by, reason);
    Ok(())
}

/// Stops a run that a restore has brought back. One that is being canceled stops before its rollback, which may have
/// been done since the backup. One that was paused stays so, and its deadline no longer ends the pause.
pub(super) fn park(draft: &mut Draft<'_>) {
    if draft.control == Control::Canceling {
        draft.notes_mut().restored = true;
        let reason = "restored from a backup while it was being canceled".to_owned();
        draft.emit(Event::RunCanceled { reason, done: false });
        return;
    }
    fail::pause(draft, "restored from a backup; look at what happened since, then resume".to_owned());
    draft.notes_mut().restored = true;
    draft.reason.get_or_insert(Reason::Restored);
}

/// Whether an operator has to say what is to become of the current step.
fn directive_due(draft: &Draft<'_>) -> bool {
    match &draft.current().phase {
        Phase::Failed | Phase::InDoubt { .. } => true,
        Phase::WaitingApproval(_) if is_planted(Bug::ResumedPastRefusal) => false,
        Phase::WaitingApproval(approval) => !is_question(approval),
        _ => false,
    }
}

/// The step that the run is in doubt about. The run counts as paused then, whether or not an operator has paused it.
fn doubted_step(draft: &Draft<'_>) -> Option<String> {
    let is_in_doubt = matches!(draft.current().phase, Phase::InDoubt { .. });
    is_in_doubt.then(|| draft.key(draft.position))
}

/// Refuses what would go past a doubt.
fn check_no_doubt(draft: &Draft<'_>) -> Result<(), Rejection> {
    match doubted_step(draft) {
        Some(step) => Err(Rejection::StepInDoubt { run: draft.run.id, step }),
        None => Ok(()),
    }
}

/// Whether the approval is open and is what the run waits for. A request to skip its step is not: the run is stopped.
fn is_question(approval: &Approval) -> bool {
    approval.state == ApprovalState::Requested && !guard::is_open_skip(approval)
}

fn waits_for_approval(draft: &Draft<'_>) -> bool {
    matches!(&draft.current().phase, Phase::WaitingApproval(approval) if is_question(approval))
}

pub(super) fn resume(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    let doubted = doubted_step(draft);
    if draft.control != Control::Paused && doubted.is_none() {
        return Err(refuse(draft, "only a paused run can be resumed"));
    }
    if directive_due(draft) {
        return Err(Rejection::DirectiveDue { run: draft.run.id, doubted });
    }
    go_active(draft);
    Ok(())
}

fn go_active(draft: &mut Draft<'_>) {
    if draft.control == Control::Paused {
        draft.control = Control::Active;
        draft.notes_mut().pause = None;
        draft.emit(Event::RunResumed {});
    }
    draft.looked_at();
    draft.reason = None;
}

/// Runs the step that stopped the run once more, in a new iteration with a fresh budget. A gate asks anew, and so does
/// the approval of a step that one guards.
pub(super) fn retry(draft: &mut Draft<'_>, input: Option<Json>) -> Result<(), Rejection> {
    check_no_doubt(draft)?;
    if draft.control != Control::Paused {
        return Err(refuse(draft, "a step can be retried only while the run is paused"));
    }
    let position = draft.position;
    if waits_for_approval(draft) {
        return Err(refuse(draft, "its approval is open; decide on that first"));
    }
    let bytes = input.as_ref().map_or(0, Json::len);
    if bytes > limits::PAYLOAD_BYTES_MAX {
        let (what, max) = ("the input", limits::PAYLOAD_BYTES_MAX);
        return Err(Rejection::TooLarge { what, bytes, max });
    }
    if input.is_some() && matches!(draft.spec(position).kind(), StepKind::Wait | StepKind::Approval) {
        let what =
            format!("{} step takes no input; retry it without one", with_article(draft.spec(position).kind().as_str()));
        return Err(Rejection::InvalidInput { what });
    }
    guard::drop_skip(draft);
    let before = last_run_with(draft, position);
    let is_changed = input.is_some();
    if is_changed {
        draft.step_mut(position).input = input;
        // The operator who has changed the input may not approve what comes of it.
        activate::exclude_requester(draft);
    }
    let terms = match guard::guard_of(draft, position) {
        Guard::Nobody => None,
        Guard::Gate(_) if is_changed && is_planted(Bug::ChangedInputNotAsked) => None,
        Guard::Gate(terms) => Some(terms),
        Guard::Gates if is_changed => {
            let what = "several gates guard this step, and none of them can show the changed input: \
                        start a new run with the right input, or retry without one";
            return Err(Rejection::InvalidInput { what: what.into() });
        }
        Guard::Gates => return restart_from(draft, position),
    };
    draft.needs(position, Occasion::Retry(Again { ask: terms.map(Box::new), before, is_changed }));
    Ok(())
}

/// Goes on with what was found out about the step that runs again.
pub(super) fn answered(
    draft: &mut Draft<'_>,
    position: u32,
    found: StepBinding,
    again: Again,
) -> Result<(), Rejection> {
    let (rendered, judged, behind) = match found {
        StepBinding::Broken(error) => {
            let what = format!("the step still cannot be bound ({error}); give it an input, or skip it");
            return Err(Rejection::InvalidInput { what });
        }
        // It could not be evaluated before; it can now, and says that there is nothing to do.
        StepBinding::ConditionFalse => return pass_over(draft, activate::CONDITION_FALSE.to_owned()),
        StepBinding::Go(rendered, judged, behind) => (rendered, judged, behind),
    };
    if draft.current().input.is_none() && rendered.input.is_some() {
        draft.step_mut(position).input.clone_from(&rendered.input);
    }
    let needed = match activate::decision_on(draft, position, judged.as_ref())? {
        Decision::Allow => None,
        Decision::Deny { reasons } => {
            let (run, step) = (draft.run.id, draft.spec(position).key.clone());
            return Err(Rejection::Denied { run, step, reasons: reasons.clone() });
        }
        Decision::NeedsApproval { reasons, terms } => {
            Some(Terms { gate: activate::asking(&terms.gate, reasons), ..(**terms).clone() })
        }
        Decision::Undecided { why } => {
            let (run, step) = (draft.run.id, draft.spec(position).key.clone());
            return Err(Rejection::Undecided { run, step, why: why.clone() });
        }
    };
    // The workflow's gate and the policy may both ask: neither makes the other weaker.
    let terms = match (again.ask.map(|terms| *terms), needed) {
        (Some(gate), Some(needed)) => Some(needed.and(&gate)),
        (gate, needed) => gate.or(needed),
    };
    if let Some(terms) = terms {
        guard::ask_to_retry(draft, terms, &again.before)?;
        if again.is_changed {
            let attempt = draft.step(position).attempt;
            draft.notes_mut().refused = Some(Refused { step: position, attempt, before: again.before });
        }
        new_iteration(draft, position);
    } else {
        new_iteration(draft, position);
        activate::activate(draft, position, StepEvent::OperatorRetry { ask: false }, (rendered, behind))?;
    }
    draft.emit(Event::StepReady { step: position, why: "operator_retry".into(), signal: None });
    go_active(draft);
    Ok(())
}

/// What the step was given when it ran last. Another input that people have refused is none.
fn last_run_with(draft: &Draft<'_>, position: u32) -> Json {
    let step = draft.step(position);
    match &draft.notes().refused {
        Some(refused) if (refused.step, refused.attempt) == (position, step.attempt) => refused.before.clone(),
        _ => draft.input(position, step.input.as_ref()),
    }
}

fn new_iteration(draft: &mut Draft<'_>, position: u32) {
    let step = draft.step_mut(position);
    step.iteration += u32::from(!is_planted(Bug::IterationNotRaised));
    step.failures = 0;
    step.last_error = None;
    step.open_intent = None;
    step.interrupted = None;
}

/// Passes over the step that stopped the run, with a reason that is kept. Where its approval is missing, the directive is
/// the vote of the person who gives it.
pub(super) fn skip(draft: &mut Draft<'_>, reason: String, voter: Option<&Voter>) -> Result<(), Rejection> {
    check_reason(&reason)?;
    if reason.trim().is_empty() {
        return Err(Rejection::InvalidInput { what: "skipping a step needs a reason".into() });
    }
    check_no_doubt(draft)?;
    if draft.control != Control::Paused {
        return Err(refuse(draft, "a step can be skipped only while the run is paused"));
    }
    if waits_for_approval(draft) {
        return Err(refuse(draft, "its approval is open; decide on that first"));
    }
    match guard::terms_to_skip(draft) {
        Some(terms) => guard::vote_to_skip(draft, &terms, reason, voter),
        None => pass_over(draft, reason),
    }
}

/// Skips the step that stopped the run, and goes on behind it.
pub(super) fn pass_over(draft: &mut Draft<'_>, why: String) -> Result<(), Rejection> {
    let position = draft.position;
    activate::skip(draft, position, StepEvent::OperatorSkip, why)?;
    go_active(draft);
    if draft.spec(position).kind() == StepKind::Rollback {
        rollback::go_on(draft, position);
        return Ok(());
    }
    activate::next_from(draft, position + 1)
}

/// Goes back to a step and runs from there again. What was done stays in the journal. The gates that guard the step are
/// gone back over as well: they ask anew.
pub(super) fn restart_from(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    check_no_doubt(draft)?;
    if draft.control != Control::Paused || draft.current().state() == StepState::Running {
        return Err(refuse(draft, "it can be restarted only while it is paused, with nothing running"));
    }
    if draft.len() > draft.run.forward_len() {
        return Err(refuse(draft, "a rollback has begun, so it cannot be restarted"));
    }
    if position > draft.position {
        let run = draft.run.id;
        return Err(match draft.run.plan.step(position) {
            Some(spec) => {
                Rejection::StepNotReached { run, step: spec.key.clone(), at: draft.spec(draft.position).key.clone() }
            }
            None => Rejection::UnknownStep { run, step: position.to_string() },
        });
    }
    if waits_for_approval(draft) {
        return Err(refuse(draft, "its approval is open; decide on that first"));
    }
    guard::drop_skip(draft);
    activate::exclude_requester(draft);
    cancel::close_wait(draft);
    rewind(draft, position)
}

/// The step, those behind it and the gates that guard it are as if they had not begun.
pub(super) fn rewind(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    let mut gates = guard::gates_of(&draft.run.plan, |at| draft.step(at), position);
    if is_planted(Bug::ApprovalInherited) {
        gates.clear();
    }
    let first = gates.first().copied().unwrap_or(position);
    for at in gates.into_iter().chain(position..=draft.position) {
        draft.go(at, StepEvent::Rewound, Phase::Pending)?;
        new_iteration(draft, at);
        draft.emit(Event::StepReady { step: at, why: "restart".into(), signal: None });
        if at > first {
            // The live row speaks for the first one; the others must not be taken for what they were.
            draft.record_done(at);
        }
    }
    go_active(draft);
    activate::next_from(draft, first)
}

pub(super) fn check_reason(reason: &str) -> Result<(), Rejection> {
    if reason.len() > limits::REASON_BYTES_MAX {
        let (bytes, max) = (reason.len(), limits::REASON_BYTES_MAX);
        return Err(Rejection::TooLarge { what: "the reason", bytes, max });
    }
    Ok(())
}
