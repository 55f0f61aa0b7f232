//! Finding a worker for a run whose commands share a directory: offered, taken or refused, lost, given up. An attempt is one
//! offer, or a time in which there was no worker to ask; after the last one the run fails, with the reason of each
//! worker.

use std::sync::Arc;

use super::draft::Draft;
use super::{control, lost};
use crate::ids::SessionId;
use crate::limits;
use crate::machine::assignment::{AssignmentEvent, next};
use crate::plan::retry::{ErrorClass, StepError};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::assignment::{AssignedSession, AssignmentFailure, AssignmentRecord, AssignmentTimes, RunAssignment};
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::state::{AssignmentState, Control, PreflightCheck, Reason, RunState, StepState};
use crate::text::visible::visible;
use crate::time::{Millis, Timestamp};

/// The answer of a worker whose check has failed.
pub(super) struct Refusal {
    pub check: PreflightCheck,
    pub why: String,
}

fn assignment<'a>(draft: &'a Draft<'_>) -> Option<&'a RunAssignment> {
    draft.notes().assignment.as_deref()
}

fn change<'a>(draft: &'a mut Draft<'_>) -> &'a mut RunAssignment {
    draft.notes_mut().assignment.get_or_insert_default()
}

fn times(draft: &Draft<'_>) -> Arc<AssignmentTimes> {
    draft.times.clone().unwrap_or_default()
}

fn is_for_one(draft: &Draft<'_>) -> bool {
    draft.spec(draft.position).rules.workdir.is_some()
}

/// Whether the step that the run stands at waits for a worker to be found.
pub(super) fn seeks(draft: &Draft<'_>) -> bool {
    let is_taken = assignment(draft).is_some_and(|assignment| assignment.acked().is_some());
    is_for_one(draft)
        && draft.control == Control::Active
        && matches!(draft.current().phase, Phase::Ready { .. })
        && !is_taken
}

/// Whether a worker may have the step: it is for any worker, or this session has taken the run.
pub(super) fn is_for(draft: &Draft<'_>, session: SessionId) -> bool {
    let has_taken = |assignment: &RunAssignment| assignment.acked().is_some_and(|with| with.session == session);
    !is_for_one(draft) || assignment(draft).is_some_and(has_taken)
}

/// Asks a worker whether it could run the commands of the run.
pub(super) fn offer(draft: &mut Draft<'_>, session: SessionId, worker: String) -> Result<(), Rejection> {
    let now = draft.now();
    let is_due = matches!(draft.current().phase, Phase::Ready { eligible_at, .. } if eligible_at <= now);
    let is_asked = assignment(draft).is_some_and(|known| known.with.is_some() || known.was_refused_by(session));
    if !seeks(draft) || !is_due || is_asked {
        return Err(Rejection::NotClaimable { run: draft.run.id, control: draft.control });
    }
    let ack_by = now + times(draft).ack;
    let assignment = change(draft);
    assignment.number += 1;
    assignment.search_until = None;
    let with = AssignedSession { session, worker: worker.clone(), offered_at: now, ack_by, acked_at: None };
    let (attempt, record) = (assignment.number, record(assignment.number, &with));
    assignment.with = Some(with);
    draft.emit(Event::RunOffered { session, worker, attempt, ack_by });
    draft.side.push(SideWrite::PutAssignment(Box::new(record)));
    Ok(())
}

/// The worker's checks have passed: the run is its own.
pub(super) fn ack(draft: &mut Draft<'_>, session: SessionId, number: u32) -> Result<(), Rejection> {
    let now = draft.now();
    let mut with = answered(draft, session, number)?;
    with.acked_at = Some(now);
    let (worker, mut record) = (with.worker.clone(), record(number, &with));
    record.state = arrow(AssignmentState::Offered, AssignmentEvent::Acked);
    let assignment = change(draft);
    assignment.with = Some(with);
    assignment.failures.clear();
    assignment.left_by = None;
    be_had_at(draft, now);
    draft.emit(Event::RunAssigned { session, worker, attempt: number });
    draft.side.push(SideWrite::PutAssignment(Box::new(record)));
    Ok(())
}

/// A check of the worker has failed: the next one is asked at once.
pub(super) fn refuse(
    draft: &mut Draft<'_>,
    session: SessionId,
    number: u32,
    refusal: Refusal,
) -> Result<(), Rejection> {
    control::check_reason(&refusal.why)?;
    answered(draft, session, number)?;
    let Refusal { check, why } = refusal;
    let why = visible(&why).to_string();
    charge(draft, Some(check), &why);
    end(draft, AssignmentEvent::Refused, Some(check), why);
    next_attempt(draft, Millis::ZERO)
}

/// The offer that is being answered: of this session, of this number, and in time.
fn answered(draft: &Draft<'_>, session: SessionId, number: u32) -> Result<AssignedSession, Rejection> {
    let known = assignment(draft).filter(|known| known.number == number);
    let offered = known.and_then(RunAssignment::offered).filter(|with| with.session == session);
    offered
        .filter(|with| draft.now() < with.ack_by)
        .cloned()
        .ok_or(Rejection::AssignmentOver { run: draft.run.id, number })
}

/// The session is over that the run was offered to, or that had it; or its worker takes nothing more, and lets go of it `in_order`.
/// A step that it runs is for [`step_lost`].
pub(super) fn session_lost(
    draft: &mut Draft<'_>,
    session: SessionId,
    why: &str,
    in_order: bool,
) -> Result<(), Rejection> {
    let held = assignment(draft).and_then(|known| known.with.clone()).filter(|with| with.session == session);
    let Some(with) = held.filter(|_| draft.current().session() != Some(session)) else {
        let number = assignment(draft).map_or(0, |known| known.number);
        return Err(Rejection::AssignmentOver { run: draft.run.id, number });
    };
    if !in_order {
        // Whom an operator keeps from the run has not failed to answer.
        charge(draft, None, why);
    }
    end(draft, AssignmentEvent::Lost, None, why.to_owned());
    if with.acked_at.is_some() {
        // It had the run. That is no failed attempt to find one.
        let known = change(draft);
        known.failures.clear();
        known.left_by = in_order.then_some(with.worker);
        be_had_at(draft, draft.now());
        return Ok(());
    }
    next_attempt(draft, Millis::ZERO)
}

/// The worker was lost while it ran a step of the run: the directory is gone, and what the command has done in it is
/// unknown.
pub(super) fn step_lost(draft: &mut Draft<'_>, position: u32) -> bool {
    let session = draft.step(position).session();
    let has_it = assignment(draft).and_then(RunAssignment::acked).is_some_and(|with| Some(with.session) == session);
    if draft.spec(position).rules.workdir.is_none() || !has_it {
        return false;
    }
    end(draft, AssignmentEvent::Lost, None, "the worker was lost while it ran a step".to_owned());
    let known = change(draft);
    known.failures.clear();
    known.lost_in_step = true;
    true
}

/// Whether the directory that the step shares went with a worker that was lost in a step.
pub(super) fn has_lost_directory(draft: &Draft<'_>, position: u32) -> bool {
    draft.spec(position).rules.workdir.is_some() && assignment(draft).is_some_and(|known| known.lost_in_step)
}

/// Whether a clock of the assignment has run out.
pub(super) fn is_due(draft: &Draft<'_>) -> bool {
    assignment(draft).and_then(RunAssignment::wake_at).is_some_and(|at| at <= draft.now())
}

/// Carries out what has become due.
pub(super) fn tick(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    let now = draft.now();
    let is_over = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
    let Some(known) = assignment(draft).cloned() else { return Ok(()) };
    if is_over(known.offered().map(|with| with.ack_by)) {
        let why = format!("it did not answer within {} ms", times(draft).ack.0);
        charge(draft, None, &why);
        end(draft, AssignmentEvent::Expired, None, why);
        let pause = times(draft).backoff_after(attempts(&known));
        return next_attempt(draft, pause);
    }
    if is_over(known.kept_until) {
        let why = format!("the run has waited for {} ms; what its directory held is gone", times(draft).kept.0);
        end(draft, AssignmentEvent::Released, None, why);
        change(draft).failures.clear();
        return Ok(());
    }
    nobody_came(draft)
}

fn attempts(known: &RunAssignment) -> usize {
    known.failures.len()
}

/// No worker was there to be asked, or all were busy. The latter costs no attempt: one of them will be free. Nor does it where it
/// is an operator's doing: the run waits for what they do next.
fn nobody_came(draft: &mut Draft<'_>) -> Result<(), Rejection> {
    let (now, busy) = (draft.now(), draft.assignable);
    if busy > 0 {
        let why = format!("{busy} connected workers could take the run, and none of them has asked for work");
        tell_unassigned(draft, why);
        change(draft).search_until = Some(now + BUSY_LOOK);
        return Ok(());
    }
    if let Some(why) = held(draft) {
        tell_unassigned(draft, why);
        let known = change(draft);
        // Whom the run has asked in vain is not asked again; a time without workers counts no more.
        known.failures.retain(|failure| failure.check.is_some());
        known.search_until = Some(now + HELD_LOOK);
        return Ok(());
    }
    let why = nobody_may(draft);
    tell_unassigned(draft, why.clone());
    let failure = AssignmentFailure { worker: None, session: None, check: None, why, at: now };
    change(draft).failures.push(failure);
    next_attempt(draft, Millis::ZERO)
}

/// What keeps workers from the run that is an operator's doing, and no failure of a worker.
fn held(draft: &Draft<'_>) -> Option<String> {
    let left = || {
        let worker = assignment(draft)?.left_by.as_deref()?;
        Some(format!("`{}` had the run and has left in good order; the run waits for another worker", visible(worker)))
    };
    draft.held.clone().or_else(left)
}

fn tell_unassigned(draft: &mut Draft<'_>, why: String) {
    let attempt = assignment(draft).map_or(0, |known| known.number);
    draft.emit(Event::RunUnassigned { session: None, worker: None, attempt, status: None, check: None, why });
}

/// Why no connected worker could be asked.
fn nobody_may(draft: &Draft<'_>) -> String {
    match draft.run.refused_workers() {
        [] if !draft.unfit.is_empty() => {
            let told = draft.unfit.iter().take(TOLD_MAX).map(|unfit| {
                let why: String = unfit.why.chars().take(limits::REFUSED_WORKER_CHARS_MAX).collect();
                format!("{} ({why})", unfit.worker)
            });
            let told: Vec<String> = told.collect();
            format!("no worker is connected that may take the run: {}", visible(&told.join(", ")))
        }
        [] => "no worker is connected that may take the run: capabilities, environment, segment and queue count"
            .to_owned(),
        refused => {
            let told = refused.iter().map(|refused| format!("{} ({})", refused.worker, refused.why));
            let told: Vec<String> = told.take(TOLD_MAX).collect();
            format!("the policy denies the run to the workers that came for it: {}", visible(&told.join(", ")))
        }
    }
}

/// How many workers a run names that has found none.
const TOLD_MAX: usize = 8;

/// How often a run that waits for busy workers says so.
const BUSY_LOOK: Millis = Millis::from_mins(1);
/// The same for one that an operator keeps waiting. A worker that may have it meanwhile is asked at once.
const HELD_LOOK: Millis = Millis::from_mins(10);

/// The next attempt begins after a pause; after the last one the run fails.
fn next_attempt(draft: &mut Draft<'_>, pause: Millis) -> Result<(), Rejection> {
    let (begins_at, attempts_max) = (draft.now() + pause, times(draft).attempts_max());
    let known = change(draft);
    known.search_until = None;
    if attempts(known) < attempts_max {
        be_had_at(draft, begins_at);
        return Ok(());
    }
    if !seeks(draft) {
        // The run is stopped: when it goes on, the search for a worker begins anew.
        change(draft).failures.clear();
        return Ok(());
    }
    let failures = change(draft).failures.clone();
    let is_checked = failures.iter().any(|failure| failure.check.is_some());
    let (reason, code) = if is_checked {
        (Reason::AssignmentError, "ASSIGNMENT_ERROR")
    } else {
        (Reason::FailedAssignment, "ASSIGNMENT_FAILED")
    };
    let told: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let message = format!("no worker has taken the run: {}", told.join("; "));
    lost::fail_run(draft, reason, StepError::new(ErrorClass::Unavailable, code, message))
}

/// The step that waits for a worker can be had from then on.
fn be_had_at(draft: &mut Draft<'_>, at: Timestamp) {
    let position = draft.position;
    if is_for_one(draft)
        && let Phase::Ready { eligible_at, .. } = &mut draft.step_mut(position).phase
    {
        *eligible_at = at;
    }
}

/// Counts the offer that stands as an attempt that came to nothing. A run that a worker has taken has made none.
fn charge(draft: &mut Draft<'_>, check: Option<PreflightCheck>, why: &str) {
    let at = draft.now();
    let known = change(draft);
    let Some(with) = known.offered() else { return };
    let (worker, session) = (Some(with.worker.clone()), Some(with.session));
    known.failures.push(AssignmentFailure { worker, session, check, why: why.to_owned(), at });
}

/// Ends the offer or the assignment that stands, with its row and its event.
fn end(draft: &mut Draft<'_>, event: AssignmentEvent, check: Option<PreflightCheck>, why: String) {
    let now = draft.now();
    let known = change(draft);
    let Some(with) = known.with.take() else { return };
    known.kept_until = None;
    let (attempt, state) = (known.number, arrow(with.state(), event));
    let (session, worker) = (Some(with.session), Some(with.worker.clone()));
    let record =
        AssignmentRecord { state, ended_at: Some(now), check, reason: Some(why.clone()), ..record(attempt, &with) };
    draft.side.push(SideWrite::PutAssignment(Box::new(record)));
    draft.emit(Event::RunUnassigned { session, worker, attempt, status: Some(state), check, why });
}

/// The arrow's end. Every caller has looked at where it begins.
fn arrow(from: AssignmentState, event: AssignmentEvent) -> AssignmentState {
    next(from, event).expect("an assignment goes along its arrows")
}

fn record(number: u32, with: &AssignedSession) -> AssignmentRecord {
    AssignmentRecord {
        number,
        session: with.session,
        worker: with.worker.clone(),
        state: with.state(),
        offered_at: with.offered_at,
        acked_at: with.acked_at,
        ended_at: None,
        check: None,
        reason: None,
    }
}

/// A person has another worker looked for: after one was lost in a command, after none was found, or while one is being
/// looked for. What an approval guards is not run again without a new approval.
pub(super) fn reassign(draft: &mut Draft<'_>, reason: &str) -> Result<(), Rejection> {
    control::check_reason(reason)?;
    if reason.trim().is_empty() {
        return Err(Rejection::InvalidInput { what: "reassigning a run needs a reason".into() });
    }
    if is_for_one(draft) && draft.current().state() == StepState::InDoubt {
        // What became of the command decides whether it may run once more.
        return Err(Rejection::ReassignedInDoubt { run: draft.run.id, step: draft.key(draft.position) });
    }
    let why = nothing_to_reassign(draft);
    let refused = Rejection::InvalidRunState { run: draft.run.id, state: draft.run.state, why };
    let Some(known) = assignment(draft).filter(|_| is_for_one(draft)) else { return Err(refused) };
    let is_unassigned = matches!(draft.reason, Some(Reason::FailedAssignment | Reason::AssignmentError));
    let has_stopped = draft.control == Control::Paused && draft.current().state() == StepState::Failed;
    if has_stopped && (known.lost_in_step || is_unassigned) {
        begin_anew(draft);
        return control::retry(draft, None);
    }
    // One that has taken the run, and does nothing with it, is not waited for for ever.
    let is_idle = known.acked().is_some()
        && draft.control == Control::Active
        && matches!(draft.current().phase, Phase::Ready { .. });
    if is_idle {
        end(draft, AssignmentEvent::Released, None, format!("it is reassigned: {reason}"));
    }
    if seeks(draft) && assignment(draft).is_some_and(|known| known.with.is_none()) {
        begin_anew(draft);
        be_had_at(draft, draft.now());
        draft.emit(Event::StepReady { step: draft.position, why: "reassign".into(), signal: None });
        return Ok(());
    }
    Err(refused)
}

/// Why a run that stands like this has nothing to reassign.
fn nothing_to_reassign(draft: &Draft<'_>) -> &'static str {
    let is_offered = assignment(draft).is_some_and(|known| known.offered().is_some());
    match draft.current().phase {
        _ if !is_for_one(draft) => {
            "the step that it stands at is for any worker, so none was looked for that takes the run"
        }
        Phase::Ready { .. } if draft.control == Control::Paused => {
            "while it is, no worker is looked for; once it is resumed, one is where it has none"
        }
        Phase::Ready { .. } if is_offered => {
            "a worker is asked whether it takes the run, and has some seconds to answer"
        }
        Phase::Running { .. } => "its worker is running the step: there is nothing to reassign",
        _ => "no worker is looked for now: there is nothing to reassign",
    }
}

fn begin_anew(draft: &mut Draft<'_>) {
    let known = change(draft);
    (known.search_until, known.lost_in_step) = (None, false);
    known.failures.clear();
}

/// What follows from where the run stands now: a search begins or ends, a wait is timed, an end lets the worker go.
pub(super) fn settle(draft: &mut Draft<'_>, state: RunState) {
    let known = assignment(draft);
    if known.is_none() && !is_for_one(draft) {
        return;
    }
    if state.is_terminal() {
        if known.is_some_and(|known| known.with.is_some()) {
            let_go(draft);
        }
        return;
    }
    let known = known.cloned().unwrap_or_default();
    let mut settled = known.clone();
    if seeks(draft) && settled.with.is_none() {
        if settled.search_until.is_none() {
            if attempts(&settled) >= times(draft).attempts_max() {
                settled.failures.clear();
            }
            let from = match draft.current().phase {
                Phase::Ready { eligible_at, .. } => eligible_at.max(draft.now()),
                _ => draft.now(),
            };
            settled.search_until = Some(from + times(draft).backoff_after(attempts(&settled)));
        }
        settled.lost_in_step = false;
    } else {
        settled.search_until = None;
        // What is in doubt is settled first.
        settled.lost_in_step &= matches!(draft.current().state(), StepState::Failed | StepState::InDoubt);
    }
    let waits = matches!(state, RunState::WaitingApproval | RunState::WaitingSignal | RunState::Paused);
    let gives_up = waits && settled.acked().is_some() && !draft.run.plan.keeps_workdir();
    settled.kept_until = if gives_up { settled.kept_until.or(Some(draft.now() + times(draft).kept)) } else { None };
    if settled != known {
        *change(draft) = settled;
    }
}

/// The run has ended: its worker is told with its next heartbeat.
fn let_go(draft: &mut Draft<'_>) {
    let now = draft.now();
    let known = change(draft);
    let Some(with) = known.with.take() else { return };
    (known.search_until, known.kept_until) = (None, None);
    let state = arrow(with.state(), AssignmentEvent::Released);
    let record = AssignmentRecord { state, ended_at: Some(now), ..record(known.number, &with) };
    draft.side.push(SideWrite::PutAssignment(Box::new(record)));
}
