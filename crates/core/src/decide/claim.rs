//! Claiming: the attempt rises, and with it the fence.

use super::draft::Draft;
use super::{activate, assign, effect, fail, guard, tried};
use crate::governance::judge::{Decision, Grant, Withheld};
use crate::ids::SessionId;
use crate::machine::step::StepEvent;
use crate::plan::retry::{ErrorClass, StepError};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::event::Event;
use crate::run::receipt::Receipt;
use crate::state::{Control, Reason, StepKind, StepState};
use crate::work::Claimer;

/// Claims the step for a worker of which nothing is known.
pub(super) fn claim(draft: &mut Draft<'_>, session: SessionId) -> Result<(), Rejection> {
    hand_out(draft, session)?;
    tried::claimed(draft, draft.position);
    Ok(())
}

fn hand_out(draft: &mut Draft<'_>, session: SessionId) -> Result<(), Rejection> {
    // A step whose approval has lapsed is judged anew before it is handed out.
    if draft.control != Control::Active || draft.has_lapsed(draft.position) || !assign::is_for(draft, session) {
        return Err(Rejection::NotClaimable { run: draft.run.id, control: draft.control });
    }
    let position = draft.position;
    let now = draft.now();
    let wake = match &draft.current().phase {
        // Not yet eligible is not an error of the claimer: another claim and a retry came in between.
        Phase::Ready { eligible_at, .. } if *eligible_at > now => {
            return Err(Rejection::NotClaimable { run: draft.run.id, control: draft.control });
        }
        Phase::Ready { wake, .. } => wake.clone(),
        _ => None,
    };
    let timeout_at = draft.spec(position).timeout.map(|timeout| now + timeout);
    let task_type = wake.as_ref().map(|wake| wake.task_type);
    draft.go(position, StepEvent::Claimed, Phase::Running { session, timeout_at, wake })?;
    let step = draft.step_mut(position);
    step.attempt = if is_planted(Bug::AttemptNotRaised) { 1 } else { step.attempt + 1 };
    step.claimed_at = Some(now);
    let attempt = step.attempt;
    draft.emit(Event::StepStarted { step: position, attempt, session, task_type });
    Ok(())
}

/// Claims the step for a worker that does not name its effects, though a repeat would do harm: the intent comes with
/// the claim, so that a lost worker leaves a doubt and not a second try.
pub(super) fn claim_with_intent(
    draft: &mut Draft<'_>,
    session: SessionId,
    (receipt, grant): (Receipt, &Grant),
) -> Result<(), Rejection> {
    let position = draft.position;
    draft.drop_lapsed(position);
    let can_be_had = draft.control == Control::Active && draft.current().state() == StepState::Ready;
    // The claim counts as a write, and the run has none left: no worker will ever take the step.
    if let Err(spent) = effect::check_write(draft, position, receipt.effect)
        && can_be_had
    {
        let error = StepError::new(ErrorClass::Terminal, spent.code(), spent.to_string());
        return fail::fail_step(draft, position, StepEvent::RunFailed, error, Reason::WritesExhausted);
    }
    hand_out(draft, session)?;
    effect::intent_of_claim(draft, receipt, grant)
}

/// Claims a step that was judged once more: it is still allowed, by an approval or without one.
pub(super) fn claim_with_grant(
    draft: &mut Draft<'_>,
    session: SessionId,
    (grant, names_effects): (&Grant, bool),
) -> Result<(), Rejection> {
    let position = draft.position;
    if !grant.covers_step(position, &draft.input(position, draft.step(position).input.as_ref())) {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) });
    }
    draft.record_decision(grant.action(), grant.ruling());
    draft.drop_lapsed(position);
    if names_effects { hand_out(draft, session) } else { claim(draft, session) }
}

/// The step may no longer be carried out when a worker comes to take it: it fails, or waits for people.
pub(super) fn withhold(draft: &mut Draft<'_>, withheld: Withheld) -> Result<(), Rejection> {
    let position = draft.position;
    let from = draft.current().state();
    if from != StepState::Ready || draft.control != Control::Active {
        return Err(Rejection::NotClaimable { run: draft.run.id, control: draft.control });
    }
    let (action, ruling, _) = withheld.into_parts();
    draft.record_decision(&action, &ruling);
    draft.drop_lapsed(position);
    match ruling.decision {
        Decision::NeedsApproval { reasons, terms } => {
            let approval = if draft.step(position).failures > 0 {
                guard::request_for_another_try(draft, &terms, &reasons)?
            } else {
                activate::request_on(draft, &terms, &reasons)
            };
            activate::ask(draft, position, StepEvent::GrantLapsed, approval)
        }
        Decision::Deny { reasons } => activate::deny(draft, position, StepEvent::RunFailed, &reasons),
        Decision::Undecided { why } => activate::undecided(draft, position, StepEvent::RunFailed, &why),
        Decision::Allow => Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(position) }),
    }
}

/// Hands the step that the run now stands at to a session that has just finished another one, if it can be claimed
/// at once, is work for the same queue, and is something that its worker can do.
pub(super) fn continue_with(draft: &mut Draft<'_>, claimer: &Claimer) {
    let step = draft.current();
    let spec = draft.spec(draft.position);
    let due = matches!(step.phase, Phase::Ready { eligible_at, .. } if eligible_at <= draft.now());
    let same_queue = spec.queue == draft.spec(draft.run.position).queue || is_planted(Bug::AnyQueue);
    let for_workers = matches!(spec.kind(), StepKind::Task | StepKind::Rollback | StepKind::Transform);
    let asks = claimer.skills.names_effects || !draft.has_named_effects(draft.position);
    if due
        && same_queue
        && for_workers
        && asks
        && claimer.takes(spec)
        && draft.control == Control::Active
        && !draft.has_lapsed(draft.position)
    {
        debug_assert_eq!(step.state(), StepState::Ready);
        let claimed =
            if claimer.skills.names_effects { hand_out(draft, claimer.session) } else { claim(draft, claimer.session) };
        claimed.expect("a ready step of an active run can be claimed");
    }
}
