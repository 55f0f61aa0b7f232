//! Claiming: the attempt rises, and with it the fence.

use std::collections::BTreeSet;

use super::draft::Draft;
use super::{activate, assign, effect, fail, guard, tried};
use crate::governance::judge::{Decision, Grant, Withheld};
use crate::ids::SessionId;
use crate::json::HashHex;
use crate::limits;
use crate::machine::step::StepEvent;
use crate::plan::retry::{ErrorClass, StepError};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::event::Event;
use crate::run::receipt::Receipt;
use crate::run::refused_worker::{RefusedWorker, StepRefusals};
use crate::state::{Control, Reason, StepKind, StepState};
use crate::work::Claimer;

/// Claims the step for a worker of which nothing is known.
pub(super) fn claim(draft: &mut Draft<'_>, session: SessionId) -> Result<(), Rejection> {
    claim_under(draft, session, None)
}

/// The same where a bundle allows the step in every run of the workflow version.
fn claim_under(draft: &mut Draft<'_>, session: SessionId, standing: Option<HashHex>) -> Result<(), Rejection> {
    hand_out(draft, session, standing)?;
    tried::claimed(draft, draft.position);
    Ok(())
}

fn hand_out(draft: &mut Draft<'_>, session: SessionId, standing: Option<HashHex>) -> Result<(), Rejection> {
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
    // Whom the rules kept away from this attempt they may let have the next.
    if draft.notes().refused_workers.is_some() {
        draft.notes_mut().refused_workers = None;
    }
    let (bundle, same_bundle) = draft.name_bundle(standing);
    draft.emit(Event::StepStarted { step: position, attempt, session, task_type, bundle, same_bundle });
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
    if let Some(spent) = spent_writes(draft) {
        return fail::fail_step(draft, position, StepEvent::RunFailed, spent, Reason::WritesExhausted);
    }
    hand_out(draft, session, grant.ruling().standing)?;
    effect::intent_of_claim(draft, receipt, grant)
}

/// The claim counts as a write, and the run has none left: no worker will ever take the step.
fn spent_writes(draft: &Draft<'_>) -> Option<StepError> {
    let can_be_had = draft.control == Control::Active && draft.current().state() == StepState::Ready;
    let spent = effect::check_claim(draft, draft.position).err().filter(|_| can_be_had)?;
    Some(StepError::new(ErrorClass::Terminal, spent.code(), spent.to_string()))
}

/// Whether the claim of the step counts as a write. A worker that names its effects asks before that of a connector, a model or a
/// command for certain, and is counted then. Where neither the workflow nor a rule looks at writes, none are counted here.
fn counts_as_write(draft: &Draft<'_>, grant: &Grant, names_effects: bool) -> bool {
    let kind = draft.spec(draft.position).kind();
    let asks = names_effects && matches!(kind, StepKind::Connector | StepKind::Model | StepKind::Command);
    !asks && (draft.run.plan.writes_max.is_some() || grant.ruling().basis.is_some())
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
    let is_write = counts_as_write(draft, grant, names_effects);
    draft.record_decision(grant.action(), grant.ruling());
    draft.drop_lapsed(position);
    if let Some(spent) = spent_writes(draft).filter(|_| is_write) {
        return fail::fail_step(draft, position, StepEvent::RunFailed, spent, Reason::WritesExhausted);
    }
    let standing = grant.ruling().standing;
    if names_effects {
        hand_out(draft, session, standing)?;
    } else {
        claim_under(draft, session, standing)?;
    }
    if is_write { effect::count_claim(draft, position) } else { Ok(()) }
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

/// The rules deny the step to the worker that came to take it, and not to every worker: the step stays ready for another one. Each
/// session is refused once under a bundle. Of those noted before, these are over and make room.
pub(super) fn refuse_worker(
    draft: &mut Draft<'_>,
    (session, worker): (SessionId, String),
    withheld: Withheld,
    over: &BTreeSet<SessionId>,
) -> Result<(), Rejection> {
    let now = draft.now();
    let is_due = matches!(draft.current().phase, Phase::Ready { eligible_at, .. } if eligible_at <= now);
    let can_be_had = is_due && draft.control == Control::Active;
    let (action, ruling, _) = withheld.into_parts();
    let (Decision::Deny { reasons }, Some(basis)) = (&ruling.decision, &ruling.basis) else {
        return Err(Rejection::NotGranted { run: draft.run.id, step: draft.key(draft.position) });
    };
    if !can_be_had || draft.run.refuses_worker(session, basis.bundle.0) {
        return Err(Rejection::NotClaimable { run: draft.run.id, control: draft.control });
    }
    let bundle = basis.bundle;
    let why = reasons.join("; ").chars().take(limits::REFUSED_WORKER_CHARS_MAX).collect();
    draft.record_refusal(&action, &ruling, worker.clone());
    if !over.is_empty()
        && let Some(noted) = &mut draft.notes_mut().refused_workers
    {
        noted.workers.retain(|earlier| !over.contains(&earlier.session));
    }
    note_refused(draft, RefusedWorker { session, worker, why, bundle, at: now });
    Ok(())
}

/// What was noted for another step, iteration or bundle says nothing about this one. Where as many are noted as may be, the decision
/// alone tells of one more: the server that has heard it keeps that worker away, and the step stays open to those that may have it.
pub(super) fn note_refused(draft: &mut Draft<'_>, refused: RefusedWorker) {
    let (step, iteration) = (draft.position, draft.current().iteration);
    let mut workers = match draft.notes_mut().refused_workers.take() {
        Some(noted) if (noted.step, noted.iteration) == (step, iteration) => noted.workers,
        _ => Vec::new(),
    };
    workers.retain(|earlier| earlier.bundle == refused.bundle);
    if workers.len() < limits::REFUSED_WORKERS_MAX {
        workers.push(refused);
    }
    draft.notes_mut().refused_workers = Some(Box::new(StepRefusals { step, iteration, workers }));
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
    let is_write = draft.run.plan.writes_max.is_some() && spec.is_governed();
    // A run that has no write left is ended by the worker that comes for the step.
    let is_spent = is_write && effect::check_claim(draft, draft.position).is_err();
    if due
        && !is_spent
        && same_queue
        && for_workers
        && asks
        && claimer.takes(spec)
        && draft.control == Control::Active
        && !draft.has_lapsed(draft.position)
    {
        let (session, standing) = (claimer.session, draft.standing.take());
        let names_effects = claimer.skills.names_effects;
        let claimed =
            if names_effects { hand_out(draft, session, standing) } else { claim_under(draft, session, standing) };
        claimed.expect("a ready step of an active run can be claimed");
        if is_write {
            effect::count_claim(draft, draft.position).expect("the run has a write left");
        }
    }
}
