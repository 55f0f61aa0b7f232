//! Activation: the next step that is still pending becomes ready, waits, or is skipped.

use super::ask::{Later, Occasion, Rendered, StepBinding};
use super::draft::Draft;
use super::{fail, gated};
use crate::governance::action::Action;
use crate::governance::judge::{Decision, Judged};
use crate::ids::ApprovalId;
use crate::json::{self, Json};
use crate::limits;
use crate::machine::step::{StepEvent, Verdict};
use crate::plan::retry::{ErrorClass, POLICY_DENIED, POLICY_UNAVAILABLE, StepError};
use crate::plan::{Accept, Gate, WaitFor, Work};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::approval::{Approval, Purpose, Terms};
use crate::run::change::SideWrite;
use crate::run::event::Event;
use crate::run::{Agreed, Awaited, Phase, Wait};
use crate::state::{ApprovalState, Control, Reason, StepState};
use crate::time::{Millis, Timestamp};

/// Why a step was skipped whose condition did not hold.
pub(super) const CONDITION_FALSE: &str = "condition is false";

/// Activates the first pending forward step at or after `from`. The run stands at the last step if there is none.
pub(super) fn next_from(draft: &mut Draft<'_>, from: u32) -> Result<(), Rejection> {
    let forward = draft.run.forward_len() as u32;
    for position in from..forward {
        draft.position = position;
        if draft.step(position).state() == StepState::Pending {
            return begin(draft, position);
        }
    }
    Ok(())
}

/// Begins a step, or asks for what must be found out before.
fn begin(draft: &mut Draft<'_>, position: u32) -> Result<(), Rejection> {
    if let Some(error) = fail::spend_is_over(draft, position) {
        draft.step_mut(position).last_error = Some(error.clone());
        return fail::fail_step(draft, position, StepEvent::RunFailed, error, Reason::SpendExhausted);
    }
    let spec = draft.spec(position);
    let is_open = spec.condition.is_some() || spec.is_rendered() || spec.is_governed();
    if is_open || !gated::guarded_by(draft, position).is_empty() {
        draft.needs(position, Occasion::Activation);
        return Ok(());
    }
    give(draft, position, None);
    activate(draft, position, StepEvent::Activated(Verdict::Go), (Rendered::default(), Vec::new()))
}

/// Goes on with what was found out about the next step.
pub(super) fn answered(draft: &mut Draft<'_>, position: u32, found: StepBinding) -> Result<(), Rejection> {
    let (rendered, judged, also) = match found {
        StepBinding::Broken(error) => {
            draft.step_mut(position).last_error = Some(error.clone());
            return fail::fail_step(draft, position, StepEvent::RunFailed, error, Reason::StepFailed);
        }
        StepBinding::ConditionFalse => {
            let event = StepEvent::Activated(Verdict::ConditionFalse);
            skip(draft, position, event, CONDITION_FALSE.to_owned())?;
            return next_from(draft, position + 1);
        }
        StepBinding::Go(rendered, judged, also) => (rendered, judged, also),
    };
    give(draft, position, rendered.input.clone());
    let changed = gated::changed_since(draft, position, judged.as_ref().map(Judged::action));
    match decision_on(draft, position, judged.as_ref())? {
        Decision::Allow => match changed {
            None => activate(draft, position, StepEvent::Activated(Verdict::Go), (rendered, also)),
            Some(changed) => gated::ask_anew(draft, position, &changed, None),
        },
        Decision::Deny { reasons } => deny(draft, position, StepEvent::Activated(Verdict::Denied), reasons),
        Decision::NeedsApproval { reasons, terms } => {
            if let Some(changed) = changed {
                let terms = Terms { gate: asking(&terms.gate, reasons), ..(**terms).clone() };
                return gated::ask_anew(draft, position, &changed, Some(&terms));
            }
            let mut approval = request_on(draft, terms, reasons);
            let also: Vec<Action> = also.into_iter().filter_map(|later| later.action.ok()).collect();
            add_along(draft, position, &mut approval, &also);
            ask(draft, position, StepEvent::Activated(Verdict::NeedsApproval), approval)
        }
        Decision::Undecided { why } => undecided(draft, position, StepEvent::Activated(Verdict::Denied), why),
    }
}

/// People see what else they agree to, and their word counts for exactly that.
fn add_along(draft: &Draft<'_>, position: u32, approval: &mut Approval, also: &[Action]) {
    if also.is_empty() {
        return;
    }
    let input = draft.input(position, draft.step(position).input.as_ref());
    let spec = draft.spec(position);
    let Some(mut card) = Action::of_step(spec, position, input).map(|action| action.card(spec)) else { return };
    card.then = also.iter().map(|action| action.card(draft.spec(action.step))).collect();
    approval.action = Some(Box::new(card));
    approval.also = also.iter().map(|action| Agreed::to(action, draft.run)).collect();
}

/// The decision on a step that is about to begin. What proposes an action and was not judged does not begin.
pub(super) fn decision_on<'j>(
    draft: &mut Draft<'_>,
    position: u32,
    judged: Option<&'j Judged>,
) -> Result<&'j Decision, Rejection> {
    match judged {
        Some(judged) => {
            draft.record_decision(judged.action(), judged.ruling());
            Ok(judged.decision())
        }
        None if draft.spec(position).is_governed() => {
            Err(not_bound(draft, position, "a decision on what it is about to do"))
        }
        None => Ok(&Decision::Allow),
    }
}

fn not_bound(draft: &Draft<'_>, position: u32, what: &'static str) -> Rejection {
    Rejection::NotBound { run: draft.run.id, step: draft.spec(position).key.clone(), what }
}

/// Also where there is none: what an earlier iteration was given is not for this one.
fn give(draft: &mut Draft<'_>, position: u32, input: Option<Json>) {
    if draft.step(position).input != input {
        draft.step_mut(position).input = input;
    }
}

/// The decision forbids the step.
pub(super) fn deny(
    draft: &mut Draft<'_>,
    position: u32,
    event: StepEvent,
    reasons: &[String],
) -> Result<(), Rejection> {
    let message = if reasons.is_empty() { "the decision gives no reason".to_owned() } else { reasons.join("; ") };
    let error = StepError::new(ErrorClass::Denied, POLICY_DENIED, message);
    fail::fail_step(draft, position, event, error, Reason::PolicyDenied)
}

/// The policy could not decide: the step does not begin, and the run stops for a directive whatever its rule on
/// failures is.
pub(super) fn undecided(draft: &mut Draft<'_>, position: u32, event: StepEvent, why: &str) -> Result<(), Rejection> {
    let error = StepError::new(ErrorClass::Denied, POLICY_UNAVAILABLE, why);
    fail::end_step(draft, position, event, error)?;
    if draft.control != Control::Canceling {
        draft.reason = Some(Reason::PolicyUnavailable);
        let key = draft.spec(position).key.clone();
        fail::pause(draft, format!("the policy could not decide on step {key}"));
    }
    Ok(())
}

/// A request for the approval that a decision asks for.
pub(super) fn request_on(draft: &mut Draft<'_>, terms: &Terms, reasons: &[String]) -> Approval {
    request(draft, &asking(&terms.gate, reasons), Purpose::Gate, None).on(terms)
}

/// The gate with why people are asked, where it does not say so itself.
pub(super) fn asking(gate: &Gate, reasons: &[String]) -> Gate {
    let mut gate = gate.clone();
    if gate.message.is_none() && !reasons.is_empty() {
        gate.message = Some(reasons.join("; "));
    }
    gate
}

/// Skips a step and says why.
pub(super) fn skip(draft: &mut Draft<'_>, position: u32, event: StepEvent, why: String) -> Result<(), Rejection> {
    draft.go(position, event, Phase::Skipped { why: why.clone() })?;
    draft.emit(Event::StepSkipped { step: position, why });
    draft.record_done(position);
    Ok(())
}

/// Brings a step to where its kind starts: ready, at its gate, or waiting. Also used when it is asked anew.
pub(super) fn activate(
    draft: &mut Draft<'_>,
    position: u32,
    event: StepEvent,
    (rendered, behind): (Rendered, Vec<Later>),
) -> Result<(), Rejection> {
    let now = draft.now();
    match &draft.spec(position).work {
        Work::Wait { until, timeout } => {
            let (until, timeout) = (until.clone(), *timeout);
            let wait = open_wait(draft, position, (until, timeout), rendered)?;
            wait_for(draft, position, event, wait)
        }
        Work::Approval(gate) => {
            let mut gate = gate.clone();
            gate.message = rendered.message.or(gate.message);
            let mut approval = request(draft, &gate, Purpose::Gate, None);
            gated::show(draft, position, &mut approval, &behind);
            ask(draft, position, event, approval)
        }
        _ => {
            let eligible_at = draft.begins_at(position, now);
            draft.go(position, event, Phase::Ready { eligible_at, wake: None })
        }
    }
}

/// Asks people: the row that they find, and the event.
pub(super) fn ask(
    draft: &mut Draft<'_>,
    position: u32,
    event: StepEvent,
    mut approval: Approval,
) -> Result<(), Rejection> {
    if approval.action.is_none() && approval.purpose != Purpose::Skip {
        let spec = draft.spec(position);
        let input = draft.input(position, draft.step(position).input.as_ref());
        let action = Action::of_step(spec, position, input);
        approval.action = action.map(|action| Box::new(action.card(spec)));
    }
    draft.emit(Event::ApprovalRequested {
        step: position,
        approval: approval.id,
        expires_at: approval.expires_at,
        purpose: (!approval.purpose.is_gate()).then_some(approval.purpose),
    });
    draft.side.push(SideWrite::PutApproval { position, approval: Box::new(approval.clone()) });
    draft.go(position, event, Phase::WaitingApproval(Box::new(approval)))
}

/// Opens a wait: a row that signals look for, and the event.
pub(super) fn wait_for(draft: &mut Draft<'_>, position: u32, event: StepEvent, wait: Wait) -> Result<(), Rejection> {
    draft.emit(Event::StepWaiting {
        step: position,
        signal: wait.signal.as_ref().map(|awaited| awaited.signal.clone()),
        key: wait.signal.as_ref().map(|awaited| awaited.key.clone()),
        deadline_at: wait.deadline_at,
    });
    if let Some(awaited) = &wait.signal {
        draft.side.push(SideWrite::OpenWait { position, awaited: awaited.clone(), opened_at: wait.opened_at });
    }
    draft.go(position, event, Phase::WaitingSignal(Box::new(wait)))
}

fn open_wait(
    draft: &Draft<'_>,
    position: u32,
    (until, timeout): (WaitFor, Option<Millis>),
    rendered: Rendered,
) -> Result<Wait, Rejection> {
    let now = draft.now();
    Ok(match until {
        WaitFor::Signal { signal, key, accept } => {
            let key = rendered
                .wait_key
                .or(key)
                .or_else(|| draft.run.header.subject.clone())
                .unwrap_or_else(|| draft.run.id.to_string());
            let accept_from = accept_from(draft, &key, accept);
            let deadline_at = timeout.map(|timeout| now + timeout);
            Wait { signal: Some(Awaited { signal, key, accept_from }), deadline_at, opened_at: now }
        }
        WaitFor::For(span) => Wait { signal: None, deadline_at: Some(now + span), opened_at: now },
        WaitFor::Until(_) => {
            let until =
                rendered.wait_until.ok_or_else(|| not_bound(draft, position, "the instant that it waits for"))?;
            Wait { signal: None, deadline_at: Some(until), opened_at: now }
        }
    })
}

/// From which instant on signals count for a wait. They carry the instant of the server that received them, whose clock
/// is not this one's: no sender can have meant the run before it existed, so its own id needs no instant at all, and
/// any other key is taken a little earlier than this server's clock says.
pub(super) fn accept_from(draft: &Draft<'_>, key: &str, accept: Accept) -> Timestamp {
    let from = match accept {
        Accept::Any => return Timestamp(0),
        Accept::SinceRun if key == draft.run.id.to_string() => return Timestamp(0),
        Accept::SinceRun => draft.run.header.created_at,
        Accept::SinceStep => draft.now(),
    };
    if is_planted(Bug::SkewNotTolerated) {
        return from;
    }
    from - limits::CLOCK_SKEW_TOLERATED
}

/// A request for the approval that a gate names. A person who asks for a skip votes for it by asking; a person who
/// directs the run otherwise has no vote, here and at every later gate.
pub(super) fn request(draft: &mut Draft<'_>, gate: &Gate, purpose: Purpose, reason: Option<String>) -> Approval {
    let now = draft.now();
    if purpose != Purpose::Skip {
        exclude_requester(draft);
    }
    let reminder =
        if draft.run.plan.rules.is_prod() { limits::APPROVAL_ESCALATE_PROD } else { limits::APPROVAL_ESCALATE_OTHER };
    Approval {
        id: ApprovalId(draft.fresh_id()),
        state: ApprovalState::Requested,
        purpose,
        reason,
        quorum: gate.quorum,
        approvers: gate.approvers.clone(),
        // As it is stored: the digest of what people see is over this.
        message: gate.message.as_ref().map(|message| message.replace(json::NUL, json::NUL_SHOWN)),
        on_reject: gate.on_reject,
        on_expiry: gate.on_expiry,
        requested_at: now,
        escalate_at: Some(now + gate.escalate_after.unwrap_or(reminder)),
        expires_at: now + gate.expires_after.unwrap_or(limits::APPROVAL_EXPIRES_AFTER),
        votes: Vec::new(),
        fallen: Vec::new(),
        excluded: excluded(draft),
        effect: None,
        also: Vec::new(),
        guards: Vec::new(),
        action: None,
        excludes_author: false,
        forbids_self: false,
        tier: None,
        and_from: Vec::new(),
    }
}

/// A person who directs the run so that approvers are asked counts as one who started it from then on.
pub(super) fn exclude_requester(draft: &mut Draft<'_>) {
    if draft.is_directed() && !draft.decided_by_vote {
        let by = &draft.asked.by;
        let people: Vec<String> = by.person.iter().chain(&by.makers).cloned().collect();
        count_as_starters(draft, people);
    }
}

/// From now on these people count as ones who started the run.
pub(super) fn count_as_starters(draft: &mut Draft<'_>, people: Vec<String>) {
    for person in people {
        if draft.run.header.started_by.as_ref() != Some(&person) && !draft.notes().starters.contains(&person) {
            draft.notes_mut().starters.push(person);
        }
    }
}

/// The people who started the run or an earlier one of its chain, or directed it so that approvers were asked.
fn excluded(draft: &Draft<'_>) -> Vec<String> {
    let mut people: Vec<String> = Vec::new();
    for person in draft.run.header.started_by.iter().chain(&draft.notes().starters) {
        if !people.contains(person) {
            people.push(person.clone());
        }
    }
    people
}
