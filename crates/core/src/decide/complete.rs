//! What a worker reports: completed, waiting, retry, dead. The attempt alone fences.

use super::draft::Draft;
use super::{Completion, Outbound, Outcome, activate, cancel, effect, fail, lost, rollback};
use crate::cost::Cost;
use crate::ids::OutboxId;
use crate::json::Json;
use crate::limits;
use crate::machine::receipt::ReceiptEvent;
use crate::machine::step::{Resolution, StepEvent};
use crate::plan::Accept;
use crate::plan::retry::{ErrorClass, StepError};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::change::{OutboxRow, SideWrite};
use crate::run::event::Event;
use crate::run::{Awaited, Phase, Run, Tokens, Wait};
use crate::state::{Control, EffectClass, StepKind, StepState};
use crate::time::Millis;

/// Whether this attempt's report has certainly been recorded, so that a repeat gets the first answer. An attempt that
/// was given up (lost, timed out, released) has none: its report comes too late. Where the step cannot tell the two
/// apart any more, the run's history can ([`ended_by_report`]).
pub fn is_recorded(run: &Run, position: u32, attempt: u32) -> bool {
    run.steps.get(position as usize).filter(|step| step.attempt == attempt).is_some_and(|step| match step.phase {
        Phase::WaitingSignal(_) => true,
        // A step that waits for leave to run again has failed before, or was given up.
        Phase::Ready { .. } | Phase::WaitingApproval(_) => {
            step.last_error.as_ref().is_some_and(|error| !ended_by_us(error))
        }
        Phase::Succeeded => !step.last_error.as_ref().is_some_and(ended_by_us),
        Phase::RolledBack => step.last_error.is_none(),
        // What it failed with may have come after its attempt was given up: a condition that cannot be evaluated, for example.
        Phase::Failed
        | Phase::Pending
        | Phase::Running { .. }
        | Phase::InDoubt { .. }
        | Phase::Skipped { .. }
        | Phase::Canceled => false,
    })
}

/// Whether the attempt has ended in doubt by its worker's own report. What the worker says once more is a repeat, unless it is that
/// the step was done.
pub(super) fn is_doubted_by_report(run: &Run, position: u32, attempt: u32) -> bool {
    let step = run.steps.get(position as usize).filter(|step| step.attempt == attempt);
    step.is_some_and(|step| {
        matches!(step.phase, Phase::InDoubt { .. }) && step.last_error.as_ref().is_some_and(|error| !ended_by_us(error))
    })
}

/// Whether the event has ended the attempt of this step that had begun before it, and then whether by a report of its worker that
/// left no doubt. Nothing where the attempt goes on after it.
pub fn ended_by_report(event: &Event, position: u32) -> Option<bool> {
    match event {
        Event::StepCompleted { step, session, .. } if *step == position => Some(session.is_some()),
        Event::StepFailed { step, error, .. } | Event::StepRetrying { step, error, .. } if *step == position => {
            Some(!ended_by_us(error))
        }
        Event::StepWaiting { step, .. } if *step == position => Some(true),
        Event::StepStarted { step, .. }
        | Event::StepReady { step, .. }
        | Event::StepInDoubt { step, .. }
        | Event::StepSkipped { step, .. }
        | Event::StepCanceled { step }
        | Event::ApprovalRequested { step, .. }
            if *step == position =>
        {
            Some(false)
        }
        _ => None,
    }
}

/// Whether the attempt was ended, or its doubt resolved, without a report of its worker. A step that people have refused to run again
/// does not tell how its last attempt ended.
pub(super) fn ended_by_us(error: &StepError) -> bool {
    matches!(error.class, ErrorClass::LeaseExpired | ErrorClass::Denied | ErrorClass::Rejected)
        || error.code == "STEP_TIMEOUT"
        || error.code.starts_with(lost::RUN_CODES)
        || (error.code.starts_with(RESOLVED) && !is_planted(Bug::ReportAfterResolveTaken))
}

/// What the codes of errors begin with that a resolved doubt leaves behind.
const RESOLVED: &str = "RESOLVED_";

/// Refuses unless this attempt of this step is the one that is running.
pub(super) fn fence(draft: &Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    let step = (position as usize) < draft.len();
    let current = if step { draft.step(position).attempt } else { 0 };
    let running = step && position == draft.position && draft.step(position).state() == StepState::Running;
    if running && (current == attempt || is_planted(Bug::NoFence)) {
        return Ok(());
    }
    Err(Rejection::StaleAttempt { run: draft.run.id, position, given: attempt, current })
}

pub(super) fn complete(draft: &mut Draft<'_>, completion: Completion) -> Result<(), Rejection> {
    let Completion { position, attempt, outcome, claim_next, cost } = completion;
    if let Outcome::Completed { output } = &outcome
        && effect::doubts_claim(draft, position, attempt)
    {
        charge(draft, position, cost)?;
        return complete_late(draft, position, output.clone());
    }
    fence(draft, position, attempt)?;
    charge(draft, position, cost)?;
    match outcome {
        Outcome::Completed { output } => {
            effect::settle_claim(draft, position, ReceiptEvent::Succeeded);
            settled(draft, position)?;
            succeed(draft, position, StepEvent::Succeeded, output)?;
        }
        Outcome::Waiting { signal, key, timeout, outbound } => {
            wait(draft, position, Awaiting { signal, key, timeout, outbound })?;
        }
        Outcome::Retry { error, backoff } => {
            note_unanswered(draft, position, &error);
            fail::try_again(draft, position, bounded(error), backoff)?;
        }
        Outcome::Dead { error } => {
            note_unanswered(draft, position, &error);
            fail::try_again(draft, position, bounded(for_good(error)), None)?;
        }
    }
    if draft.control == Control::Canceling {
        return cancel::attempt_ended(draft);
    }
    // What is tried again is judged again, as by any worker that comes for it.
    let is_judged_first = draft.position == position && draft.spec(position).is_governed();
    draft.claimer = claim_next.filter(|_| !is_judged_first);
    Ok(())
}

/// What had no answer in time may still arrive, whoever has stopped waiting for it.
fn note_unanswered(draft: &mut Draft<'_>, position: u32, error: &StepError) {
    if error.class == ErrorClass::Timeout {
        draft.may_still_arrive(position);
    }
}

/// Counts what the attempt has cost. A model's answer without a price counts as all that was left.
pub(super) fn charge(draft: &mut Draft<'_>, position: u32, mut cost: Option<Box<Cost>>) -> Result<(), Rejection> {
    if let Some(cost) = &mut cost {
        let unit = draft.run.plan.rules.spend_unit.as_deref();
        let checked = cost.check().and_then(|()| cost.check_unit_of(unit));
        checked.map_err(|what| Rejection::InvalidInput { what })?;
        cost.unit = unit.map(str::to_owned);
    }
    let asks_model = draft.spec(position).kind() == StepKind::Model;
    let unpriced = cost.as_ref().map_or(asks_model, |cost| cost.unpriced);
    if let Some(cost) = &cost
        && !Tokens::default().plus(cost).is_none()
    {
        draft.notes_mut().tokens = draft.notes().tokens.plus(cost);
    }
    let mut spent = draft.notes().spent_micros.saturating_add(cost.as_ref().map_or(0, |cost| cost.micros));
    if unpriced {
        spent = spent.max(draft.run.plan.rules.spend_max_micros.unwrap_or_default());
        // Rules of the tenant may limit what is spent where the workflow does not.
        if !draft.notes().unpriced {
            draft.notes_mut().unpriced = true;
        }
    }
    if spent != draft.notes().spent_micros {
        draft.notes_mut().spent_micros = spent;
        let unit = draft.run.plan.rules.spend_unit.clone();
        draft.notes_mut().spent_unit = unit;
    }
    draft.cost = cost;
    Ok(())
}

/// The worker was given up, and says now that it has done the step. Where the doubt is about the whole step, there is
/// no better evidence.
fn complete_late(draft: &mut Draft<'_>, position: u32, output: Json) -> Result<(), Rejection> {
    effect::settle_claim(draft, position, ReceiptEvent::Succeeded);
    // It is the worker's report that is recorded, and a repeat of it is one.
    draft.step_mut(position).last_error = None;
    draft.reason = None;
    succeed(draft, position, StepEvent::Resolved(Resolution::Happened), output)
}

/// Refuses a report while the outcome of an effect is not recorded.
fn settled(draft: &Draft<'_>, position: u32) -> Result<(), Rejection> {
    if draft.step(position).open_intent.is_none() || is_planted(Bug::BlindRetry) {
        return Ok(());
    }
    let what = "the attempt has an effect whose outcome is not recorded; record it first".to_owned();
    Err(Rejection::InvalidInput { what })
}

/// The error of an attempt that its worker does not want tried again.
pub(super) fn for_good(error: StepError) -> StepError {
    let class = if error.class.is_retryable() { ErrorClass::Terminal } else { error.class };
    StepError { class, ..error }
}

/// A worker's error, cut to the limits: it may have been built without them. Only a decision denies and only a vote
/// rejects; what an API that the worker called refused is the step's own failure.
pub(super) fn bounded(error: StepError) -> StepError {
    let class = match error.class {
        ErrorClass::Denied | ErrorClass::Rejected if !is_planted(Bug::RefusalIsDecision) => ErrorClass::Terminal,
        class => class,
    };
    StepError::new(class, &error.code, error.message)
}

const RESOLVED_WITHOUT_REPORT: &str = "resolved as happened; its worker had not reported that";

/// The step has succeeded: its output is stored, and the run goes on.
pub(super) fn succeed(draft: &mut Draft<'_>, position: u32, event: StepEvent, output: Json) -> Result<(), Rejection> {
    if output.len() > limits::PAYLOAD_BYTES_MAX {
        let (bytes, max) = (output.len(), limits::PAYLOAD_BYTES_MAX);
        return Err(Rejection::TooLarge { what: "the output", bytes, max });
    }
    let session = draft.step(position).session();
    draft.go(position, event, Phase::Succeeded)?;
    let output_bytes = output.len() as u64;
    let step = draft.step_mut(position);
    step.output = Some(output);
    // A doubt that was resolved without its worker: should its report come after all, it comes too late. What led to the doubt is
    // cleared before where the worker itself resolves it.
    let unreported = matches!(event, StepEvent::Resolved(_)) && step.last_error.is_some();
    step.last_error = unreported.then(|| StepError::resolved_as_happened(RESOLVED_WITHOUT_REPORT));
    step.open_intent = None;
    step.interrupted = None;
    let attempt = step.attempt;
    let cost = draft.cost.take();
    draft.emit(Event::StepCompleted { step: position, attempt, output_bytes, session, cost });
    draft.record_done(position);
    if draft.spec(position).kind() == StepKind::Rollback {
        return rollback::step_succeeded(draft, position);
    }
    if draft.control == Control::Canceling {
        return Ok(());
    }
    activate::next_from(draft, position + 1)
}

struct Awaiting {
    signal: String,
    key: String,
    timeout: Option<Millis>,
    outbound: Vec<Outbound>,
}

fn wait(draft: &mut Draft<'_>, position: u32, awaiting: Awaiting) -> Result<(), Rejection> {
    let Awaiting { signal, key, timeout, outbound } = awaiting;
    if outbound.len() > limits::OUTBOUND_PER_CHANGE_MAX {
        let (count, max) = (outbound.len(), limits::OUTBOUND_PER_CHANGE_MAX);
        return Err(Rejection::InvalidInput { what: format!("{count} outbound messages, the limit is {max}") });
    }
    // Nothing was judged that changes anything.
    if !outbound.is_empty() && draft.spec(position).effect_class() == EffectClass::Read {
        let what =
            "the step is declared `effect: read`, and sends a message: declare what it does, so that it is judged";
        return Err(Rejection::InvalidInput { what: what.to_owned() });
    }
    if signal.is_empty() || signal.len() > limits::NAME_BYTES_MAX || key.len() > limits::KEY_BYTES_MAX {
        let what = format!(
            "a wait needs a signal type of 1 to {} bytes and a key of at most {}",
            limits::NAME_BYTES_MAX,
            limits::KEY_BYTES_MAX
        );
        return Err(Rejection::InvalidInput { what });
    }
    let now = draft.now();
    for Outbound { destination, payload } in outbound {
        if payload.len() > limits::PAYLOAD_BYTES_MAX {
            let (bytes, max) = (payload.len(), limits::PAYLOAD_BYTES_MAX);
            let what = "an outbound message";
            return Err(Rejection::TooLarge { what, bytes, max });
        }
        let id = OutboxId(draft.fresh_id());
        if !is_planted(Bug::OutboxForgotten) {
            draft.side.push(SideWrite::Outbox(Box::new(OutboxRow { id, destination, payload })));
        }
    }
    effect::settle_claim(draft, position, ReceiptEvent::Succeeded);
    settled(draft, position)?;
    let accept_from = activate::accept_from(draft, &key, Accept::SinceRun);
    let wait = Wait {
        // An answer may overtake the question's own commit, or come to an attempt that was lost.
        signal: Some(Awaited { signal, key, accept_from }),
        deadline_at: timeout.map(|timeout| now + timeout),
        opened_at: now,
    };
    activate::wait_for(draft, position, StepEvent::Waiting, wait)
}
