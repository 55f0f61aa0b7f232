//! What an approval guards. A gate guards every step behind it up to the next gate. An approval permits one execution of
//! what it guards: to run such a step once more, to go back to it, or to go on without its approval, needs people
//! who could have approved it, in the same number (decision 0017).

use super::draft::Draft;
use super::{activate, approve, control, rollback};
use crate::json::{Hash, Json};
use crate::limits;
use crate::machine::step::StepEvent;
use crate::plan::{Gate, OnDenial, Plan, StepSpec, Work};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::approval::{Approval, Purpose, Terms, Voter};
use crate::run::event::Event;
use crate::run::{Phase, Run, Step};
use crate::state::{ApprovalState, StepKind, StepState};
use crate::text::visible::visible;

/// The gates whose approvals a step stands on, the first one first: back to the nearest one that asked. Gates with nothing
/// between them that acts guard together. One that was skipped may have been so because its condition was false, and then
/// the one before it counts as well.
pub(super) fn gates_of<'a>(plan: &Plan, step: impl Fn(u32) -> &'a Step, position: u32) -> Vec<u32> {
    let mut gates = Vec::new();
    let mut found = false;
    for at in (0..position.min(plan.steps.len() as u32)).rev() {
        match plan.steps[at as usize].work {
            Work::Approval(_) => {
                gates.push(at);
                found |= step(at).state() != StepState::Skipped;
            }
            Work::Wait { .. } | Work::Transform { .. } => {}
            _ if found => break,
            _ => {}
        }
    }
    gates.reverse();
    gates
}

const fn gate(spec: &StepSpec) -> Option<&Gate> {
    match &spec.work {
        Work::Approval(gate) => Some(gate),
        _ => None,
    }
}

/// What an approval asked for, as a gate that asks for the same again.
fn terms_of(approval: &Approval) -> Terms {
    let gate = Gate {
        approvers: approval.approvers.clone(),
        quorum: approval.quorum,
        message: None,
        on_reject: approval.on_reject,
        on_expiry: approval.on_expiry,
        escalate_after: None,
        expires_after: None,
    };
    let Approval { and_from, excludes_author, forbids_self, tier, .. } = approval.clone();
    Terms { gate, and_from, excludes_author, forbids_self, tier }
}

/// Whose approval the current step of a run needs to be skipped; `None` where no open or refused approval guards it.
pub fn skip_terms(run: &Run) -> Option<Gate> {
    terms_at(&run.plan, |at| &run.steps[at as usize], run.position).map(|terms| terms.gate)
}

pub(super) fn terms_to_skip(draft: &Draft<'_>) -> Option<Terms> {
    if is_planted(Bug::GateSkipped) {
        return None;
    }
    terms_at(&draft.run.plan, |at| draft.step(at), draft.position)
}

fn terms_at<'a>(plan: &Plan, step: impl Fn(u32) -> &'a Step, position: u32) -> Option<Terms> {
    if let Some(gate) = plan.steps.get(position as usize).and_then(gate) {
        return Some(gate.clone().into());
    }
    match &step(position).phase {
        Phase::WaitingApproval(approval) => Some(terms_of(approval)),
        _ => None,
    }
}

/// Whose leave another execution of a step needs.
pub(super) enum Guard {
    Nobody,
    Gate(Terms),
    /// The leave of several gates, one after the other.
    Gates,
}

/// What guards another execution of a step. A wait does nothing, and a gate asks by itself.
pub(super) fn guard_of(draft: &Draft<'_>, position: u32) -> Guard {
    if draft.spec(position).kind() == StepKind::Rollback {
        return guard_of_undoing(draft, position);
    }
    let Some(spec) = draft.run.plan.step(position) else { return Guard::Nobody };
    if matches!(spec.work, Work::Wait { .. } | Work::Approval(_)) || is_planted(Bug::ApprovalInherited) {
        return Guard::Nobody;
    }
    let gates = guarding(&draft.run.plan, |at| draft.step(at), position);
    with_refused(draft, position, gates)
}

/// The same with the people of an approval that the step stands at and that was refused: neither stand for the others.
fn with_refused(draft: &Draft<'_>, position: u32, gates: Guard) -> Guard {
    let Phase::WaitingApproval(approval) = &draft.step(position).phase else { return gates };
    match gates {
        Guard::Nobody => Guard::Gate(terms_of(approval)),
        Guard::Gate(gate) => Guard::Gate(terms_of(approval).and(&gate)),
        Guard::Gates => Guard::Gates,
    }
}

/// What undoes a step is covered by the step's permission, as the workflow has it. An input that an operator gives it
/// instead is for those to approve who have let the step happen.
fn guard_of_undoing(draft: &Draft<'_>, position: u32) -> Guard {
    if draft.step(position).input.is_none() {
        return with_refused(draft, position, Guard::Nobody);
    }
    let gates = guarding(&draft.run.plan, |at| draft.step(at), rollback::undoes(draft, position));
    with_refused(draft, position, gates)
}

fn guarding<'a>(plan: &Plan, step: impl Fn(u32) -> &'a Step, position: u32) -> Guard {
    let was_asked = |at: &u32| !matches!(&step(*at).phase, Phase::Skipped { why } if why == activate::CONDITION_FALSE);
    let mut asked = gates_of(plan, &step, position).into_iter().filter(was_asked);
    match (asked.next().and_then(|at| gate(&plan.steps[at as usize])), asked.next()) {
        (None, _) => Guard::Nobody,
        (Some(gate), None) => Guard::Gate(gate.clone().into()),
        (Some(_), Some(_)) => Guard::Gates,
    }
}

/// All people whom the gates before a step have asked. Where all gates were skipped, they are asked as if the gates
/// had not been skipped; and where there is no gate at all, any one approver is asked.
pub(super) fn terms_before(draft: &Draft<'_>, position: u32) -> Terms {
    let plan = &draft.run.plan;
    let gates = gates_of(plan, |at| draft.step(at), position);
    let terms_of = |asked: &dyn Fn(u32) -> bool| {
        let asked = gates.iter().filter(|at| asked(**at));
        let terms = asked.filter_map(|at| gate(&plan.steps[*at as usize])).map(|gate| Terms::from(gate.clone()));
        terms.reduce(|all, next| all.and(&next))
    };
    let of_asked = terms_of(&|at| draft.step(at).state() != StepState::Skipped);
    of_asked.or_else(|| terms_of(&|_| true)).unwrap_or_else(|| Gate::of_anybody().into())
}

/// An operator says that a step did nothing, and it is to run once more. The people who let it happen are asked first,
/// by each of its gates where there are several.
pub(super) fn repeat(draft: &mut Draft<'_>, guard: Guard, reason: &str) -> Result<(), Rejection> {
    match guard {
        Guard::Nobody => Ok(()),
        Guard::Gate(terms) => ask_to_repeat(draft, &terms, reason),
        Guard::Gates => control::rewind(draft, draft.position),
    }
}

fn ask_to_repeat(draft: &mut Draft<'_>, terms: &Terms, reason: &str) -> Result<(), Rejection> {
    let position = draft.position;
    let key = &draft.spec(position).key;
    let digest = Hash::of(draft.input(position, draft.step(position).input.as_ref()).as_str().as_bytes());
    let why = format!("a person says that its effect did not happen ({})", visible(reason));
    let message = format!("Run step `{key}` again, with the same input (sha256 {digest}): {why}.");
    let gate = Gate { message: Some(message), ..terms.gate.clone() };
    let approval = activate::request(draft, &gate, Purpose::Retry, None).on(terms);
    activate::ask(draft, position, StepEvent::GrantLapsed, approval)
}

/// Asks the people again before a guarded step runs once more. They see what failed and what the step is given now.
pub(super) fn ask_to_retry(draft: &mut Draft<'_>, terms: Terms, before: &Json) -> Result<(), Rejection> {
    let position = draft.position;
    let message = retry_message(draft, before)?;
    let gate = Gate { message: Some(message), ..terms.gate.clone() };
    let approval = activate::request(draft, &gate, Purpose::Retry, None).on(&terms);
    let event = StepEvent::OperatorRetry { ask: true };
    activate::ask(draft, position, event, approval)
}

/// A request for leave to try a step again that has failed, with what the policy says to it.
pub(super) fn request_for_another_try(
    draft: &mut Draft<'_>,
    terms: &Terms,
    reasons: &[String],
) -> Result<Approval, Rejection> {
    let position = draft.position;
    let same = draft.input(position, draft.step(position).input.as_ref());
    let tries = draft.step(position).failures + 1;
    let again = retry_message(draft, &same)?;
    let message = format!("{again} It would be try {tries}. {}", reasons.join("; "));
    let gate = Gate { message: Some(message), ..terms.gate.clone() };
    Ok(activate::request(draft, &gate, Purpose::Retry, None).on(terms))
}

fn retry_message(draft: &Draft<'_>, before: &Json) -> Result<String, Rejection> {
    let (key, step) = (&draft.spec(draft.position).key, draft.current());
    let failure = step.last_error.as_ref().map_or_else(String::new, |error| format!(", which failed ({})", error.code));
    let input = &draft.input(draft.position, step.input.as_ref());
    let digest = Hash::of(input.as_str().as_bytes());
    if input == before {
        return Ok(format!("Run step `{key}` again{failure}, with the same input (sha256 {digest})."));
    }
    let changes = difference(before, input)?;
    Ok(format!("Run step `{key}` again{failure}, with another input (sha256 {digest}):\n{changes}"))
}

/// How an input differs from the one before, field by field. What does not fit on a card is refused: no person approves
/// what they were not shown.
pub(super) fn difference(before: &Json, after: &Json) -> Result<String, Rejection> {
    let unreadable =
        |error: serde_json::Error| Rejection::InvalidInput { what: format!("the input is not JSON: {error}") };
    let (before, after) = (before.to_value().map_err(unreadable)?, after.to_value().map_err(unreadable)?);
    let mut lines = Vec::new();
    match (before.as_object(), after.as_object()) {
        (Some(old), Some(new)) => {
            for (name, value) in old.iter().filter(|(name, value)| new.get(*name) != Some(*value)) {
                lines.push(format!("- {name}: {value}"));
            }
            for (name, value) in new.iter().filter(|(name, value)| old.get(*name) != Some(*value)) {
                lines.push(format!("+ {name}: {value}"));
            }
        }
        _ => lines.extend([format!("- {before}"), format!("+ {after}")]),
    }
    // A field's name must not pass for a line of its own.
    let lines: Vec<_> = lines.iter().map(|line| visible(line)).collect();
    let text = lines.join("\n");
    let (bytes, max) = (text.len(), limits::DIFFERENCE_BYTES_MAX);
    if bytes > max {
        let what = format!(
            "the changed input differs by {bytes} bytes, and approvers are shown at most {max}: change less, or start a new run"
        );
        return Err(Rejection::InvalidInput { what });
    }
    Ok(text)
}

/// One person's vote to skip the step. The first vote asks for the skip; the vote that completes the quorum does it.
pub(super) fn vote_to_skip(
    draft: &mut Draft<'_>,
    terms: &Terms,
    reason: String,
    voter: Option<&Voter>,
) -> Result<(), Rejection> {
    let position = draft.position;
    let (run, step, quorum) = (draft.run.id, draft.spec(position).key.clone(), terms.gate.quorum);
    let refuse = |why| Rejection::DirectiveNotPermitted { run, step: step.clone(), verb: "skip", quorum, why };
    let voter =
        voter.ok_or_else(|| refuse("Only people decide, never keys: sign in, and skip it as yourself".into()))?;
    let open = match &draft.current().phase {
        Phase::WaitingApproval(open) if is_open_skip(open) => Some((**open).clone()),
        _ => None,
    };
    if open.as_ref().is_some_and(|open| open.expires_at <= draft.now()) {
        return Err(refuse("The request to skip it has expired; ask again in a moment".into()));
    }
    let is_new = open.is_none();
    let approval = open.unwrap_or_else(|| {
        let message = format!("Skip step `{step}` without its approval: {reason}");
        let on = OnDenial::Pause;
        let gate = Gate { message: Some(message), on_reject: on, on_expiry: on, ..terms.gate.clone() };
        activate::request(draft, &gate, Purpose::Skip, Some(reason.clone())).on(terms)
    });
    let (voter, vote) = approve::cast(draft, voter, true, Some(reason));
    let after = approval.vote(&voter, vote.clone()).map_err(|refused| match refused {
        Rejection::VoteRefused { why, .. } => refuse(why),
        other => other,
    })?;
    if is_new {
        draft.emit(Event::ApprovalRequested {
            step: position,
            approval: after.id,
            expires_at: after.expires_at,
            purpose: Some(Purpose::Skip),
        });
    }
    approve::record(draft, position, (&approval, &after), (&voter, vote));
    if after.state == ApprovalState::Approved {
        return skip_approved(draft, &after);
    }
    draft.go(position, StepEvent::DirectiveAsked, Phase::WaitingApproval(Box::new(after)))
}

/// Whether an operator has asked to skip the step, and others have still to agree.
pub(super) fn is_open_skip(approval: &Approval) -> bool {
    approval.purpose == Purpose::Skip && approval.state == ApprovalState::Requested
}

/// Enough people have agreed: the step is skipped, and the record says by whom.
pub(super) fn skip_approved(draft: &mut Draft<'_>, approval: &Approval) -> Result<(), Rejection> {
    let reason = approval.reason.as_deref().unwrap_or_default();
    let why = format!("by {}: {reason}", approval.approved_by().join(", "));
    // They have decided, as approvers do; none of them has asked for what comes next.
    draft.decided_by_vote = true;
    control::pass_over(draft, why)
}

/// Closes a request to skip the step that something else has overtaken.
pub(super) fn drop_skip(draft: &mut Draft<'_>) {
    if matches!(&draft.current().phase, Phase::WaitingApproval(open) if is_open_skip(open)) {
        super::cancel::close_questions(draft);
    }
}
