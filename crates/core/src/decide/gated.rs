//! What a gate's vote is about. People see what the steps behind the gate are about to do, as far as that can be told, and let
//! the run pass for that: a step that is about to do something else when it is reached asks them anew, with the difference.

use super::ask::Later;
use super::draft::Draft;
use super::{activate, guard};
use crate::governance::action::Action;
use crate::json::{HashHex, Json};
use crate::limits;
use crate::machine::step::{StepEvent, Verdict};
use crate::plan::{BlastRadius, Gate, Work};
use crate::planted::{Bug, is_planted};
use crate::rejection::Rejection;
use crate::run::Foreseen;
use crate::run::approval::{Approval, Purpose, Terms};
use crate::run::card::ActionCard;
use crate::state::{EffectClass, StepKind, StepState};

/// The steps that act behind a gate, up to the next one. Gates with nothing between them that acts guard together.
/// No more of them than a card shows.
pub(super) fn guarded_by(draft: &Draft<'_>, gate: u32) -> Vec<u32> {
    let mut guarded = all_guarded_by(draft, gate);
    guarded.truncate(limits::GUARDED_ACTIONS_MAX);
    guarded
}

fn all_guarded_by(draft: &Draft<'_>, gate: u32) -> Vec<u32> {
    let plan = &draft.run.plan;
    if !plan.step(gate).is_some_and(|spec| matches!(spec.work, Work::Approval(_))) {
        return Vec::new();
    }
    let mut guarded = Vec::new();
    for position in gate + 1..plan.steps.len() as u32 {
        let spec = draft.spec(position);
        if matches!(spec.work, Work::Approval(_)) && !guarded.is_empty() {
            break;
        }
        if spec.is_governed() && draft.step(position).state() == StepState::Pending {
            guarded.push(position);
        }
    }
    guarded
}

/// Shows on a gate's card what it guards, and binds what is known of it.
pub(super) fn show(draft: &Draft<'_>, position: u32, approval: &mut Approval, behind: &[Later]) {
    if behind.is_empty() {
        return;
    }
    let (mut cards, mut bytes) = (Vec::with_capacity(behind.len()), 0);
    for Later { step, action } in behind {
        let spec = draft.spec(*step);
        let known = action.as_ref().ok().map(|action| (action, action.input.as_str().len()));
        let shown = known.filter(|(_, length)| bytes + length <= limits::GUARDED_BYTES_MAX);
        if let Some((action, length)) = shown {
            bytes += length;
            let keeps_input = bytes <= limits::FORESEEN_BYTES_MAX;
            approval.guards.push(foreseen(draft, action, keeps_input));
            cards.push(action.card(spec));
            continue;
        }
        let why = match action {
            Ok(_) => format!("it is longer than the {} bytes that a card shows", limits::GUARDED_BYTES_MAX),
            Err(why) => why.clone(),
        };
        let Some(action) = Action::of_step(spec, *step, Json::null()) else { continue };
        cards.push(ActionCard { unknown: Some(why), ..action.card(spec) });
    }
    let unshown = all_guarded_by(draft, position).len().saturating_sub(behind.len());
    approval.action = Some(Box::new(ActionCard {
        step: draft.spec(position).key.clone(),
        kind: StepKind::Approval,
        operation: "pass the gate".to_owned(),
        input: Json::null(),
        effect: EffectClass::Read,
        blast_radius: cards.iter().map(|card| card.blast_radius).max().unwrap_or(BlastRadius::Low),
        destructive: cards.iter().any(|card| card.destructive),
        undone_by: None,
        only_if: None,
        unknown: (unshown > 0).then(|| format!("{unshown} more steps behind it are not shown")),
        then: cards,
    }));
}

fn foreseen(draft: &Draft<'_>, action: &Action, keeps_input: bool) -> Foreseen {
    let input = keeps_input.then(|| action.input.clone());
    let iteration = draft.step(action.step).iteration;
    Foreseen { step: action.step, iteration, action: HashHex(action.digest()), input }
}

/// The gate is passed, for what stood on its card.
pub(super) fn pass(draft: &mut Draft<'_>, approval: &Approval) {
    if approval.guards.is_empty() {
        return;
    }
    let guards = &approval.guards;
    let foreseen = &mut draft.notes_mut().foreseen;
    foreseen.retain(|old| guards.iter().all(|new| new.step != old.step));
    foreseen.extend(guards.iter().cloned());
}

/// What is about to happen differs from what people have let pass.
pub(super) struct ChangedSince {
    message: String,
    terms: Terms,
}

/// Whether a step behind a gate is about to do something else than what stood on the gate's card.
pub(super) fn changed_since(draft: &Draft<'_>, position: u32, action: Option<&Action>) -> Option<ChangedSince> {
    let iteration = draft.step(position).iteration;
    let own = draft.notes().foreseen.iter().find(|own| (own.step, own.iteration) == (position, iteration));
    let (Some(own), Some(action)) = (own, action) else { return None };
    let now = HashHex(action.digest());
    if own.action == now || is_planted(Bug::GateSkipped) {
        return None;
    }
    let terms = guard::terms_before(draft, position);
    let key = &draft.spec(position).key;
    let changes = own.input.as_ref().and_then(|before| guard::difference(before, &action.input).ok());
    let changes = changes.map_or_else(|| ".".to_owned(), |changes| format!(":\n{changes}"));
    let message = format!(
        "Step `{key}` is about to do something else than what the gate before it was passed for (sha256 {} then, {} now){changes}",
        own.action.0, now.0
    );
    Some(ChangedSince { message, terms })
}

/// Asks the gate's people about the step itself, and those whom the policy asks.
pub(super) fn ask_anew(
    draft: &mut Draft<'_>,
    position: u32,
    changed: &ChangedSince,
    policy: Option<&Terms>,
) -> Result<(), Rejection> {
    // They are asked about it from here on.
    draft.notes_mut().foreseen.retain(|foreseen| foreseen.step != position);
    let terms = policy.map_or_else(|| changed.terms.clone(), |policy| policy.clone().and(&changed.terms));
    let gate = Gate { message: Some(changed.message.clone()), ..terms.gate.clone() };
    let approval = activate::request(draft, &gate, Purpose::Gate, None).on(&terms);
    activate::ask(draft, position, StepEvent::Activated(Verdict::NeedsApproval), approval)
}
