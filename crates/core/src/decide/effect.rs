//! Effects: intent before, outcome after, and what is done about the doubt in between.

use super::draft::Draft;
use super::guard::{self, Guard};
use super::{activate, assign, claim, complete, fail, lost, tried};
use crate::governance::action::tightened;
use crate::governance::judge::{Decision, Grant, Withheld};
use crate::ids::{ReceiptId, RunId};
use crate::json::{HashHex, Json};
use crate::limits;
use crate::machine::receipt::ReceiptEvent;
use crate::machine::step::{Resolution, StepEvent};
use crate::plan::retry::{ErrorClass, POLICY_DENIED, StepError};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::run::receipt::{EffectHold, Receipt};
use crate::run::refused_worker::RefusedWorker;
use crate::run::{Agreed, ClaimWrite, Phase, StepIteration};
use crate::state::{Control, EffectClass, Reason, ReceiptState, StepKind, StepState};
use crate::time::Millis;

/// An effect that a worker asks for.
pub(super) struct AskedEffect<'a> {
    pub receipt: Receipt,
    pub grant: &'a Grant,
    /// Its key was counted before: it is the same effect once more.
    pub again: bool,
    /// That no other run of the tenant has it meanwhile.
    pub hold: Option<Box<EffectHold>>,
}

/// The intent is durable before the first byte is sent, and takes leave for this very effect.
pub(super) fn intent(
    draft: &mut Draft<'_>,
    position: u32,
    attempt: u32,
    AskedEffect { mut receipt, grant, again, hold }: AskedEffect<'_>,
) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    receipt.effect = tightened(draft.spec(position), receipt.effect);
    if !grant.covers(&receipt) {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) });
    }
    if draft.control == Control::Canceling {
        return Err(Rejection::Canceling { run: draft.run.id });
    }
    // The worker names its effects after all: from here on it tells what becomes of them.
    settle_claim(draft, position, ReceiptEvent::Failed);
    let open = draft.step(position).open_intent.is_some() && !is_planted(Bug::BlindRetry);
    if receipt.state != ReceiptState::Intent || open {
        let what = "an attempt performs its effects one after the other; record the outcome of the open one first";
        return Err(Rejection::InvalidInput { what: what.into() });
    }
    if receipt.unsettled && receipt.effect == EffectClass::Unsafe && !is_planted(Bug::BlindRetry) {
        return Err(Rejection::EffectRecorded {
            run: draft.run.id,
            key: receipt.key,
            state: ReceiptState::Intent.as_str(),
        });
    }
    let is_shared = draft.spec(position).rules.dedupe_window().is_some() && receipt.effect != EffectClass::Read;
    if is_shared && hold.is_none() && !again {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) });
    }
    if !again {
        count_effect(draft, position, receipt.effect)?;
    }
    if let Some(hold) = hold {
        draft.side.push(SideWrite::HoldEffect(hold));
    }
    if is_shared {
        note_named(draft, position);
    }
    if receipt.effect == EffectClass::Unsafe {
        draft.step_mut(position).open_intent = Some(receipt.id);
        note_named(draft, position);
    }
    draft.record_decision(grant.action(), grant.ruling());
    use_up(draft, grant);
    if receipt.effect != EffectClass::Read {
        tried::acts(draft, position);
    }
    note_undoing(draft, position, &receipt);
    receipt.bundle = grant.ruling().bundle();
    put_under(draft, position, receipt, grant.ruling().bundle());
    Ok(())
}

/// The effect is not performed: another run of the tenant has had it, within the time in which the step's workflow takes the two
/// for one.
pub(super) fn deduplicate(
    draft: &mut Draft<'_>,
    position: u32,
    attempt: u32,
    (receipt, run): (ReceiptId, RunId),
) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    if draft.control == Control::Canceling {
        return Err(Rejection::Canceling { run: draft.run.id });
    }
    if draft.spec(position).rules.dedupe_window().is_none() {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) });
    }
    settle_claim(draft, position, ReceiptEvent::Failed);
    // What an earlier iteration did has been undone, or stands by itself.
    let iteration = draft.step(position).iteration;
    let is_over = |named: &StepIteration| named.step == position && named.iteration != iteration;
    if draft.notes().named.iter().any(is_over) {
        draft.notes_mut().named.retain(|named| !is_over(named));
    }
    draft.emit(Event::EffectDeduplicated { step: position, attempt, receipt, run });
    Ok(())
}

/// What undoes a step is entered with its receipts.
fn note_undoing(draft: &mut Draft<'_>, position: u32, receipt: &Receipt) {
    let noted = &draft.notes().undone_by;
    let is_new = noted.len() < limits::COMPENSATION_RECEIPTS_MAX && !noted.contains(&receipt.id);
    if draft.spec(position).kind() == StepKind::Rollback && is_new {
        draft.notes_mut().undone_by.push(receipt.id);
    }
}

/// What was done can always be undone: a rollback is neither counted nor held up.
fn is_counted(draft: &Draft<'_>, position: u32, effect: EffectClass) -> bool {
    effect != EffectClass::Read && draft.spec(position).kind() != StepKind::Rollback
}

/// Whether the claim of the step is counted already, in this iteration.
fn is_claim_counted(draft: &Draft<'_>, position: u32) -> bool {
    let iteration = draft.step(position).iteration;
    draft.notes().claim_write.is_some_and(|claim| claim.is_of(position, iteration))
}

/// Whether the run may have one more write, where the claim of the step is one.
pub(super) fn check_claim(draft: &Draft<'_>, position: u32) -> Result<(), Rejection> {
    if is_claim_counted(draft, position) {
        return Ok(());
    }
    check_write(draft, position, draft.spec(position).effect_class())
}

/// Counts a step that changes something when a worker takes it, which may name no effect: once in an iteration of the step, however
/// often it is tried.
pub(super) fn count_claim(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    let (effect, iteration) = (draft.spec(position).effect_class(), draft.step(position).iteration);
    if is_claim_counted(draft, position) || !is_counted(draft, position, effect) {
        return Ok(());
    }
    count_write(draft, position, effect)?;
    draft.notes_mut().claim_write = Some(ClaimWrite { step: position, iteration, named: false });
    Ok(())
}

/// Counts an effect that a worker names. The first one of a step is the write that its claim was counted as.
fn count_effect(draft: &mut Draft<'_>, position: u32, effect: EffectClass) -> Result<(), Rejection> {
    let iteration = draft.step(position).iteration;
    let is_open = |claim: &ClaimWrite| claim.is_of(position, iteration) && !claim.named;
    let claim = draft.notes().claim_write.filter(is_open);
    match claim {
        Some(claim) if is_counted(draft, position, effect) => {
            draft.notes_mut().claim_write = Some(ClaimWrite { named: true, ..claim });
            Ok(())
        }
        _ => count_write(draft, position, effect),
    }
}

/// Whether the run may have one more effect.
fn check_write(draft: &Draft<'_>, position: u32, effect: EffectClass) -> Result<(), Rejection> {
    match draft.run.plan.writes_max {
        Some(max) if is_counted(draft, position, effect) && draft.notes().writes >= max => {
            Err(Rejection::WritesExhausted { run: draft.run.id, max })
        }
        _ => Ok(()),
    }
}

fn count_write(draft: &mut Draft<'_>, position: u32, effect: EffectClass) -> Result<(), Rejection> {
    check_write(draft, position, effect)?;
    if is_counted(draft, position, effect) {
        draft.notes_mut().writes += 1;
    }
    Ok(())
}

/// From here on the step is for workers that name their effects: no other knows which have happened.
fn note_named(draft: &mut Draft<'_>, step: u32) {
    if !draft.has_named_effects(step) {
        let iteration = draft.step(step).iteration;
        let named = &mut draft.notes_mut().named;
        named.retain(|earlier| earlier.step != step);
        named.push(StepIteration { step, iteration });
    }
}

/// What people have agreed to is done once.
fn use_up(draft: &mut Draft<'_>, grant: &Grant) {
    if draft.notes().agreed.is_empty() {
        return;
    }
    let (step, action) = (grant.action().step, HashHex(grant.action().digest()));
    draft.notes_mut().agreed.retain(|agreed| (agreed.step, agreed.action) != (step, action));
}

/// Whether an effect that the attempt has asked for can be kept from it now.
fn check_withheld(draft: &Draft<'_>, position: u32, attempt: u32) -> Result<(), Rejection> {
    complete::fence(draft, position, attempt)?;
    if draft.control == Control::Canceling {
        return Err(Rejection::Canceling { run: draft.run.id });
    }
    if draft.step(position).open_intent.is_some() {
        let what = "an attempt performs its effects one after the other; record the outcome of the open one first";
        return Err(Rejection::InvalidInput { what: what.into() });
    }
    Ok(())
}

/// A running step asked to perform an effect, and the decision does not allow it: the attempt is over. It fails, or waits
/// until people have agreed to this very effect, and then runs again.
pub(super) fn withhold(
    draft: &mut Draft<'_>,
    position: u32,
    attempt: u32,
    withheld: Withheld,
) -> Result<(), Rejection> {
    check_withheld(draft, position, attempt)?;
    let (action, ruling, agreed) = withheld.into_parts();
    draft.record_decision(&action, &ruling);
    // Its worker is told so, and what it has sent before may still be on its way.
    draft.attempt_lives = true;
    draft.may_still_arrive(position);
    match ruling.decision {
        Decision::NeedsApproval { reasons, terms } => {
            let mut approval = activate::request_on(draft, &terms, &reasons);
            approval.effect = Some(agreed);
            approval.action = Some(Box::new(action.card(draft.spec(position))));
            let wake = fail::wake_of(draft, position);
            let step = draft.step_mut(position);
            step.interrupted = wake;
            // The attempt has not reported, and what it may still report comes too late.
            let message = "an effect of the step needs approval";
            step.last_error = Some(StepError::new(ErrorClass::Denied, "EFFECT_NEEDS_APPROVAL", message));
            activate::ask(draft, position, StepEvent::NeedsApproval, approval)
        }
        Decision::Deny { reasons } => activate::deny(draft, position, StepEvent::Denied, &reasons),
        Decision::Undecided { why } => activate::undecided(draft, position, StepEvent::Denied, &why),
        Decision::Allow => Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) }),
    }
}

/// A running step asked to perform an effect, and the rules deny it to its worker, not to every worker: the attempt is over, at no cost to
/// the budget, and the step waits for another worker. From then on workers are judged when they come for it.
pub(super) fn refuse_worker(
    draft: &mut Draft<'_>,
    (position, attempt): (u32, u32),
    worker: String,
    withheld: Withheld,
) -> Result<(), Rejection> {
    check_withheld(draft, position, attempt)?;
    let (action, ruling, _) = withheld.into_parts();
    let (Decision::Deny { reasons }, Some(basis), Some(session)) =
        (&ruling.decision, &ruling.basis, draft.step(position).session())
    else {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) });
    };
    let (bundle, now) = (basis.bundle, draft.now());
    let why: String = reasons.join("; ").chars().take(limits::REFUSED_WORKER_CHARS_MAX).collect();
    draft.record_refusal(&action, &ruling, worker.clone());
    draft.attempt_lives = true;
    draft.may_still_arrive(position);
    // Rules may let a worker have the step and not its effect: then workers come for it in turns, more and more seldom.
    let given_back = attempt.saturating_sub(draft.step(position).failures).clamp(1, 10) - 1;
    let pause = if given_back == 0 { 0 } else { limits::UNKNOWN_TASK_PAUSE.0 << (given_back - 1) };
    let eligible_at = now + Millis(pause).min(limits::UNKNOWN_TASK_PAUSE_MAX);
    let wake = fail::wake_of(draft, position);
    draft.go(position, StepEvent::Released, Phase::Ready { eligible_at, wake })?;
    tried::ended(draft, position);
    let message = format!("the policy denies it to the worker {worker}: {why}");
    draft.step_mut(position).last_error = Some(StepError::new(ErrorClass::Denied, POLICY_DENIED, message));
    draft.emit(Event::StepReady { step: position, why: "worker_refused".into(), signal: None });
    claim::note_refused(draft, RefusedWorker { session, worker, why, bundle, at: now });
    Ok(())
}

/// The intent that comes with a claim, under leave for the whole step.
pub(super) fn intent_of_claim(draft: &mut Draft<'_>, mut receipt: Receipt, grant: &Grant) -> Result<(), Rejection> {
    let position = draft.position;
    let attempt = draft.step(position).attempt;
    if !grant.covers_step(position, &draft.input(position, draft.step(position).input.as_ref())) {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) });
    }
    if draft.has_named_effects(position) {
        return Err(Rejection::NotClaimable { run: draft.run.id, control: draft.control });
    }
    let fits = receipt.is_of_claim() && receipt.state == ReceiptState::Intent && receipt.effect == EffectClass::Unsafe;
    if !fits || (receipt.position, receipt.attempt) != (position, attempt) {
        let what = "the intent of a claim names the attempt that the claim makes".to_owned();
        return Err(Rejection::InvalidInput { what });
    }
    count_claim(draft, position)?;
    draft.record_decision(grant.action(), grant.ruling());
    draft.step_mut(position).open_intent = Some(receipt.id);
    tried::claimed(draft, position);
    note_undoing(draft, position, &receipt);
    receipt.bundle = grant.ruling().bundle();
    put_under(draft, position, receipt, grant.ruling().bundle());
    Ok(())
}

/// Whether this attempt is in doubt, and all that is known of its effects is that it was claimed.
pub(super) fn doubts_claim(draft: &Draft<'_>, position: u32, attempt: u32) -> bool {
    position == draft.position
        && matches!(draft.current().phase, Phase::InDoubt { .. })
        && draft.current().attempt == attempt
        && draft.receipt.as_ref().is_some_and(|receipt| receipt.is_of_claim())
}

/// Closes the intent that came with the claim, if there is one: the worker has said what became of the step.
pub(super) fn settle_claim(draft: &mut Draft<'_>, position: u32, event: ReceiptEvent) {
    let Some(mut receipt) = draft.receipt.take_if(|receipt| receipt.is_of_claim()) else { return };
    let Some(state) = crate::machine::receipt::next(receipt.state, event) else { return };
    receipt.late = receipt.state == ReceiptState::InDoubt;
    receipt.state = state;
    receipt.outcome_at = Some(draft.now());
    draft.step_mut(position).open_intent = None;
    put(draft, position, *receipt);
}

/// The outcome, told by the attempt that had the effect. If the step is in doubt by now, this is the best evidence
/// there is: the receipt is settled, and the step may run again, since the effect's key answers with this receipt.
pub(super) fn outcome(
    draft: &mut Draft<'_>,
    position: u32,
    attempt: u32,
    mut receipt: Receipt,
) -> Result<(), Rejection> {
    let is_told = match receipt.state {
        ReceiptState::Succeeded => true,
        ReceiptState::Failed => !receipt.unsettled,
        // This attempt did not have it; an earlier one may have.
        ReceiptState::InDoubt => receipt.unsettled,
        ReceiptState::Intent => false,
    };
    if !is_told {
        let what = "an outcome says that the effect happened, or that it did not".to_owned();
        return Err(Rejection::InvalidInput { what });
    }
    let doubted = (position as usize) < draft.len()
        && matches!(draft.step(position).phase, Phase::InDoubt { receipt: id, .. } if id == receipt.id)
        && draft.step(position).attempt == attempt;
    if doubted {
        receipt.late = true;
        let eligible_at = draft.now();
        put(draft, position, receipt);
        if assign::has_lost_directory(draft, position) {
            return stop_resolved(draft, position);
        }
        let wake = draft.step_mut(position).interrupted.take();
        draft.go(position, StepEvent::Resolved(Resolution::DidNotHappen), Phase::Ready { eligible_at, wake })?;
        draft.step_mut(position).open_intent = None;
        draft.reason = None;
        draft.emit(Event::StepReady { step: position, why: "late_outcome".into(), signal: None });
        return Ok(());
    }
    if has_let_go(draft, position, attempt) && (receipt.position, receipt.attempt) == (position, attempt) {
        receipt.late = true;
        put(draft, position, receipt);
        return Ok(());
    }
    complete::fence(draft, position, attempt)?;
    let step = draft.step_mut(position);
    if step.open_intent == Some(receipt.id) {
        step.open_intent = None;
    }
    if receipt.state != ReceiptState::Succeeded && receipt.effect != EffectClass::Read {
        tried::did_not_act(draft, position);
    }
    put(draft, position, receipt);
    Ok(())
}

/// Whether a rollback has ended the doubt about this attempt, and goes on or waits until nothing more of it can come. What is
/// told of its effect now is kept; the run does as it was told already.
fn has_let_go(draft: &Draft<'_>, position: u32, attempt: u32) -> bool {
    let is_rolled_back = draft.len() > draft.run.forward_len() && (position as usize) < draft.run.forward_len();
    is_rolled_back && draft.step(position).attempt == attempt && draft.step(position).state() == StepState::Canceled
}

/// The receipt of the open effect, if there is one, now that no report of its outcome will come any more.
pub(super) fn given_up(draft: &mut Draft<'_>) -> Option<Box<Receipt>> {
    let mut receipt = draft.receipt.take()?;
    receipt.state = crate::machine::receipt::next(receipt.state, ReceiptEvent::Lost)?;
    Some(receipt)
}

pub(super) fn put(draft: &mut Draft<'_>, position: u32, receipt: Receipt) {
    put_under(draft, position, receipt, None);
}

/// The same for an intent, with the bundle that allows the effect.
fn put_under(draft: &mut Draft<'_>, position: u32, receipt: Receipt, bundle: Option<HashHex>) {
    let (attempt, id, state) = (receipt.attempt, receipt.id, receipt.state);
    draft.emit(Event::ReceiptRecorded { step: position, attempt, receipt: id, state, bundle });
    draft.side.push(SideWrite::PutReceipt(Box::new(receipt)));
}

pub(super) struct Resolve {
    pub position: u32,
    pub resolution: Resolution,
    pub output: Option<Json>,
    pub reason: String,
}

/// What became of the effect is known; the run's directory is gone all the same, and only a person has it begun elsewhere.
fn stop_resolved(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    draft.step_mut(position).open_intent = None;
    tried::ended(draft, position);
    let unsaid =
        || StepError::new(ErrorClass::LeaseExpired, "LEASE_EXPIRED", "the worker was lost while it ran the step");
    let error = draft.step(position).last_error.clone().unwrap_or_else(unsaid);
    lost::stop_without_directory(draft, position, StepEvent::Resolved(Resolution::Failed), error)
}

/// A probe or a person says what became of an effect in doubt.
pub(super) fn resolve(draft: &mut Draft<'_>, resolve: Resolve) -> Result<(), Rejection> {
    let Resolve { position, resolution, output, reason } = resolve;
    super::control::check_reason(&reason)?;
    let event = StepEvent::Resolved(resolution);
    let from = draft.step(position).state();
    let Phase::InDoubt { known_at, .. } = draft.current().phase else {
        return Err(Rejection::InvalidTransition { run: draft.run.id, step: draft.key(position), from, event });
    };
    if position != draft.position {
        return Err(Rejection::InvalidTransition { run: draft.run.id, step: draft.key(position), from, event });
    }
    if resolution != Resolution::Happened && draft.now() < known_at {
        let after = known_at.since(draft.now());
        return Err(Rejection::EffectUnderWay { run: draft.run.id, step: draft.key(position), after });
    }
    if let Some(mut receipt) = draft.receipt.take() {
        let outcome = match resolution {
            Resolution::Happened => ReceiptEvent::Succeeded,
            Resolution::DidNotHappen | Resolution::Failed => ReceiptEvent::Failed,
        };
        if let Some(state) = crate::machine::receipt::next(receipt.state, outcome) {
            receipt.state = state;
            receipt.outcome_at = Some(draft.now());
            // What a target says is kept whatever it says: it is the evidence.
            if resolution == Resolution::Happened || !draft.is_directed() {
                receipt.response.clone_from(&output);
            }
            put(draft, position, *receipt);
        }
    }
    draft.step_mut(position).open_intent = None;
    draft.reason = None;
    match resolution {
        Resolution::Happened => {
            if output.is_some() {
                activate::exclude_requester(draft);
            }
            complete::succeed(draft, position, event, output.unwrap_or_else(Json::null))
        }
        Resolution::DidNotHappen if assign::has_lost_directory(draft, position) => stop_resolved(draft, position),
        Resolution::DidNotHappen => {
            // That it did not happen is only said: an approval is not used a second time on that.
            if draft.notes().agreed.iter().any(|agreed| agreed.step == position) {
                draft.notes_mut().agreed.retain(|agreed| agreed.step != position);
            }
            let is_directed = draft.is_directed();
            let guard = if is_directed { guard::guard_of(draft, position) } else { Guard::Nobody };
            // As agreed to long ago, so that it is judged anew before a worker gets it.
            let lapsed = draft.agreed_step(position).filter(|_| is_directed);
            draft.notes_mut().agreed.extend(lapsed.map(|agreed| Agreed { at: Agreed::OVER, ..agreed }));
            let eligible_at = draft.now();
            let wake = draft.step_mut(position).interrupted.take();
            draft.go(position, event, Phase::Ready { eligible_at, wake })?;
            draft.emit(Event::StepReady { step: position, why: format!("resolved: {reason}"), signal: None });
            guard::repeat(draft, guard, &reason)
        }
        Resolution::Failed => {
            let error = StepError::new(ErrorClass::Terminal, "RESOLVED_FAILED", reason);
            fail::fail_step(draft, position, event, error, Reason::StepFailed)
        }
    }?;
    Ok(())
}
