//! Claiming: only what is ready, due and active; the attempt rises every time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::case::{Case, Opening, Ruled, pause, session};
use super::plans::{Tuned, gate, plan, signal, task, tasks, timer, transform};
use crate::decide::{Command, Completion, Outcome};
use crate::governance::action::Action;
use crate::governance::judge::{Decision, Judge, Ruling};
use crate::json::{Hash, HashHex};
use crate::limits;
use crate::plan::OnDenial;
use crate::plan::retry::ErrorClass;
use crate::rejection::Rejection;
use crate::run::change::{ClaimChange, SideWrite};
use crate::run::event::Event;
use crate::run::why::{Cause, Surroundings, why};
use crate::run::{Phase, Run};
use crate::state::{RunState, StepState};
use crate::time::Millis;

const CLAIM: Command = Command::Claim { session: session(1) };

#[test]
fn a_claim_starts_the_run_and_raises_the_attempt() {
    let mut case = Case::of(tasks(1));
    assert_eq!((case.state(), case.step(0).attempt), (RunState::Pending, 0));
    case.tell(CLAIM);
    assert_eq!((case.state(), case.step(0).attempt), (RunState::Running, 1));
    assert_eq!(case.change.claim, ClaimChange::Take { first: true });
    assert_eq!(case.names(), ["execution.step.started"]);
    assert_eq!(case.step(0).session(), Some(session(1)));
    assert_eq!(case.step(0).claimed_at, Some(case.now));
}

#[test]
fn a_second_claim_is_not_the_first_of_the_run() {
    let mut case = Case::of(tasks(1));
    case.claim().fails(ErrorClass::Unavailable).claim();
    assert_eq!(case.change.claim, ClaimChange::Take { first: false });
    assert_eq!(case.step(0).attempt, 2);
}

#[test]
fn what_is_not_ready_is_not_claimed() {
    let running = {
        let mut case = Case::of(tasks(1));
        case.claim();
        case
    };
    let cases = [
        (running, StepState::Running),
        (Case::of(plan(vec![signal("w", None)])), StepState::WaitingSignal),
        (Case::of(plan(vec![timer("w", Millis(5))])), StepState::WaitingSignal),
        (Case::of(plan(vec![gate("g", OnDenial::Fail)])), StepState::WaitingApproval),
    ];
    for (mut case, state) in cases {
        let no = case.refuse(CLAIM);
        assert!(matches!(no, Rejection::InvalidTransition { from, .. } if from == state), "{no}");
    }
}

#[test]
fn a_claim_before_its_time_is_refused() {
    let mut case = Case::of(plan(vec![task("t").attempts(3)]));
    case.claim().fails(ErrorClass::Unavailable);
    assert!(matches!(case.refuse(CLAIM), Rejection::NotClaimable { .. }));
    case.after(Millis(499));
    assert!(matches!(case.refuse(CLAIM), Rejection::NotClaimable { .. }));
    case.after(Millis(1)).tell(CLAIM);
}

#[test]
fn nothing_is_claimed_from_a_paused_run() {
    let mut case = Case::of(tasks(1));
    case.tell(pause());
    assert_eq!(case.row().eligible_at, None, "a dispatcher does not even see it");
    assert!(matches!(case.refuse(CLAIM), Rejection::NotClaimable { .. }));
    case.tell(Command::Resume).tell(CLAIM);
}

#[test]
fn the_claim_carries_the_steps_timeout() {
    let mut case = Case::of(plan(vec![task("t").timeout(Millis(100))]));
    case.claim();
    assert_eq!(case.row().step_timeout_at, Some(case.now + Millis(100)));
}

/// A completion that asks for the next step, on plans whose second step differs.
#[test]
fn the_next_step_comes_with_the_completion_where_that_is_allowed() {
    let seconds = [
        (task("b"), true),
        (task("b").queue("other"), false),
        // Transforms have a queue of their own.
        (transform("b"), false),
        (signal("b", None), false),
        (gate("b", OnDenial::Fail), false),
    ];
    for (second, fused) in seconds {
        let kind = second.kind();
        let mut case = Case::of(plan(vec![task("a"), second]));
        case.claim();
        let outcome = Outcome::Completed { output: crate::json::Json::null() };
        case.tell(Command::Complete(Completion {
            claim_next: Some(super::case::claimer(1)),
            ..case.completion(outcome)
        }));
        assert_eq!(case.run.position, 1);
        assert_eq!(case.step(1).state() == StepState::Running, fused, "{kind}");
        let expected = if fused { ClaimChange::None } else { ClaimChange::Release };
        assert_eq!(case.change.claim, expected, "{kind}");
        if fused {
            assert_eq!(case.change.journal.len(), 1, "one row for the whole hand-over");
            assert!(matches!(case.change.live, crate::run::change::LiveChange::Advance(_)));
        }
    }
}

/// Allows everything in every run, by a bundle of which this is every byte of the hash.
#[derive(Debug)]
struct AlwaysStands(u8);

impl Judge for AlwaysStands {
    fn judge(&self, _: &Action, _: &Run) -> Ruling {
        Ruling::standing(HashHex(Hash([self.0; 32])))
    }
}

/// The first byte of the bundle's hash that the last change names, and whether it says that the bundle is the same as before.
fn named_by(case: &Case) -> (Option<u8>, bool) {
    let named = case.events().into_iter().find_map(|event| match event {
        Event::StepStarted { bundle, same_bundle, .. } => Some((bundle.map(|hash| hash.0.0[0]), same_bundle)),
        _ => None,
    });
    named.expect("a step has started")
}

#[test]
fn a_run_names_the_bundle_that_allows_its_steps_once_and_another_one_again() {
    fn goes_on(case: &mut Case) -> (Option<u8>, bool) {
        let outcome = Outcome::Completed { output: crate::json::Json::null() };
        let completion = Completion { claim_next: Some(super::case::claimer(1)), ..case.completion(outcome) };
        case.tell(Command::Complete(completion));
        named_by(case)
    }
    let judge = Arc::new(AlwaysStands(3));
    let mut case = Opening { claim: Some(super::case::claimer(1)), judge, ..Opening::of(tasks(6)) }.start();
    assert_eq!(named_by(&case), (Some(3), false));
    assert_eq!(goes_on(&mut case), (None, true));
    case.judge = Arc::new(AlwaysStands(4));
    assert_eq!(goes_on(&mut case), (Some(4), false));
    // Another process does not know what was named.
    case.run.named_bundle = None;
    assert_eq!(goes_on(&mut case), (Some(4), false));
    // A worker that comes for the step.
    let outcome = Outcome::Completed { output: crate::json::Json::null() };
    case.tells(|case| case.reports(outcome)).tells(Case::claim_judged);
    assert_eq!(named_by(&case), (None, true));
    // No policy was asked: there is nothing to name.
    case.judge = Arc::new(crate::governance::judge::AllowDeclared);
    assert_eq!(goes_on(&mut case), (None, false));
}

#[test]
fn a_paused_run_hands_nothing_on() {
    let mut case = Case::of(tasks(2));
    case.claim().tell(pause());
    let outcome = Outcome::Completed { output: crate::json::Json::null() };
    case.tell(Command::Complete(Completion { claim_next: Some(super::case::claimer(1)), ..case.completion(outcome) }));
    assert_eq!(case.step(1).state(), StepState::Ready);
    assert_eq!(case.state(), RunState::Paused);
}

#[test]
fn the_first_step_can_be_claimed_with_the_start() {
    let case = Opening { claim: Some(super::case::claimer(4)), ..Opening::of(tasks(1)) }.start();
    assert_eq!(case.state(), RunState::Running);
    assert_eq!(case.change.claim, ClaimChange::Take { first: true });
    assert!(matches!(case.step(0).phase, Phase::Running { session: by, .. } if by == session(4)));
}

/// Whatever stands before it: the first claim is what the tenant's rate counts.
#[test]
fn a_run_counts_with_its_first_claim() {
    let mut plain = Case::of(tasks(2));
    plain.claim();
    assert_eq!(plain.change.claim, ClaimChange::Take { first: true });
    plain.complete().claim();
    assert_eq!(plain.change.claim, ClaimChange::Take { first: false });
    let mut gated = Case::of(plan(vec![gate("g", OnDenial::Fail), task("t")]));
    gated.tells(|case| case.vote("eve@example.com", true)).claim();
    assert_eq!(gated.change.claim, ClaimChange::Take { first: true });
}

/// What the rules deny to one worker another one may have.
#[test]
fn a_worker_that_the_rules_deny_a_step_leaves_it_to_others() {
    let mut case = Case::of(tasks(1));
    case.tells(|case| case.refuse_worker(1, 7));
    assert_eq!((case.state(), case.step(0).attempt), (RunState::Pending, 0), "it was not handed out");
    let events = case.events();
    assert!(
        matches!(&events[..], [Event::PolicyDecided { verdict, worker: Some(worker), .. }]
            if verdict == "deny" && worker == "worker-1"),
        "{events:?}"
    );
    assert!(case.change.side.iter().any(|side| matches!(side, SideWrite::PutDecision(_))));
    assert!(case.run.refuses_worker(session(1), Hash([7; 32])) && !case.run.refuses_worker(session(2), Hash([7; 32])));
    let again = case.refuse_worker(1, 7);
    assert!(matches!(case.refuse(again), Rejection::NotClaimable { .. }), "it is recorded once");
    // `why` names who was refused by the rules in force, and the rule.
    let told = |case: &Case, bundle| {
        let around = Surroundings { workers: Some(0), bundle, ..Surroundings::default() };
        match why(&case.run, case.now, around).because.into_iter().next() {
            Some(Cause::Unclaimed { refused, .. }) => refused,
            other => panic!("{other:?}"),
        }
    };
    let refused = told(&case, Some(Hash([7; 32])));
    assert_eq!((&*refused[0].worker, &*refused[0].why), ("worker-1", "by_worker: it has no certificate"));
    assert!(told(&case, Some(Hash([8; 32]))).is_empty(), "other rules have not spoken yet");
    // Other rules are other rules.
    case.tells(|case| case.refuse_worker(1, 8));
    assert!(!case.run.refuses_worker(session(1), Hash([7; 32])), "what was said before counts no more");
    // Another worker takes the step, and the next step knows nothing of it.
    case.tell(Command::Claim { session: session(2) });
    assert_eq!(case.step(0).session(), Some(session(2)));
}

/// The same where the rules speak right before an effect: the attempt is over, the budget is not touched, and the worker is not given
/// the step again.
#[test]
fn a_worker_that_the_rules_deny_an_effect_leaves_the_step_to_others() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| case.refuse_effect(1, 7));
    assert_eq!((case.step(0).state(), case.step(0).failures), (StepState::Ready, 0));
    assert_eq!(case.change.claim, ClaimChange::Release);
    assert!(case.run.refuses_worker(session(1), Hash([7; 32])) && case.run.is_denied_to_workers());
    let late = Completion {
        position: 0,
        attempt: 1,
        outcome: Outcome::Completed { output: super::case::json("1") },
        claim_next: None,
        cost: None,
    };
    assert!(
        matches!(case.refuse(Command::Complete(late)), Rejection::StaleAttempt { .. }),
        "its report comes too late"
    );
    case.tell(Command::Claim { session: session(2) });
    assert_eq!((case.step(0).attempt, case.step(0).session()), (2, Some(session(2))));
    // Where the rules let workers have the step and not its effect, they do not go round without a pause.
    case.tells(|case| case.refuse_effect(2, 7));
    let Phase::Ready { eligible_at, .. } = case.step(0).phase else { panic!("it is ready") };
    assert!(eligible_at > case.now);
}

/// What has an open effect is not given away.
#[test]
fn a_worker_with_an_open_effect_is_not_refused_another() {
    let mut case = Case::of(tasks(1));
    case.claim().tells(|case| case.intent(crate::state::EffectClass::Unsafe));
    let refused = case.refuse_effect(1, 7);
    assert!(matches!(case.refuse(refused), Rejection::InvalidInput { .. }));
}

#[test]
fn a_worker_is_not_refused_what_cannot_be_had() {
    let mut case = Case::of(tasks(1));
    case.tell(pause());
    let refused = case.refuse_worker(1, 7);
    assert!(matches!(case.refuse(refused), Rejection::NotClaimable { .. }));
    let mut case = Case::of(tasks(1));
    case.claim();
    let refused = case.refuse_worker(2, 7);
    assert!(matches!(case.refuse(refused), Rejection::NotClaimable { .. }));
}

/// However many workers come that may not have the step, what is noted stays bounded, and one that may have it is not kept waiting.
#[test]
fn so_many_refused_workers_are_noted_and_the_step_stays_due() {
    let mut case = Case::of(tasks(1));
    for number in 0..limits::REFUSED_WORKERS_MAX as u128 {
        case.tells(|case| case.refuse_worker(number, 7));
    }
    case.tells(|case| case.refuse_worker(1_000, 7));
    assert!(
        case.change.side.iter().any(|side| matches!(side, SideWrite::PutDecision(_))),
        "it is recorded all the same"
    );
    assert_eq!(case.run.refused_workers().len(), limits::REFUSED_WORKERS_MAX);
    assert_eq!(case.row().eligible_at, Some(case.now), "it stays due");
    // Sessions that are over make room for those that live.
    let over = BTreeSet::from([session(0), session(5)]);
    case.tells(|case| match case.refuse_worker(1_001, 7) {
        Command::RefuseWorker { session, worker, withheld, .. } => {
            Command::RefuseWorker { session, worker, withheld, over: over.clone() }
        }
        other => panic!("{other:?}"),
    });
    let refuses = |case: &Case, number| case.run.refuses_worker(session(number), Hash([7; 32]));
    assert!(refuses(&case, 1_001) && refuses(&case, 1) && !refuses(&case, 0) && !refuses(&case, 5));
    assert_eq!(case.run.refused_workers().len(), limits::REFUSED_WORKERS_MAX - 1);
    case.tell(Command::Claim { session: session(2_000) });
    assert_eq!(case.step(0).session(), Some(session(2_000)));
}

/// Rules that look at the run may look at the worker, who was not known to them: it is judged when it comes for the step.
#[test]
fn a_step_that_rules_looked_at_is_not_claimed_in_the_same_commit() {
    let judge = Arc::new(Ruled { decision: Decision::Allow, bundle: 7 });
    let case = Opening { claim: Some(super::case::claimer(4)), judge, ..Opening::of(tasks(1)) }.start();
    assert_eq!((case.state(), case.step(0).state()), (RunState::Pending, StepState::Ready));
    let judge = Arc::new(Ruled { decision: Decision::Allow, bundle: 7 });
    let mut case = Opening { judge, ..Opening::of(tasks(2)) }.start();
    case.claim();
    let outcome = Outcome::Completed { output: crate::json::Json::null() };
    case.tell(Command::Complete(Completion { claim_next: Some(super::case::claimer(1)), ..case.completion(outcome) }));
    assert_eq!(case.step(1).state(), StepState::Ready);
}
