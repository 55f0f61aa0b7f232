//! Asking: what is not found out and not allowed does not begin, whichever command wants it.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::case::{Always, Case, Opening, START, asks, bound, denied, json, retry, session};
use super::moves::{self, any_moves, any_plan};
use super::plans::{Tuned, plan, task, tasks, transform};
use super::property::MOVES_MAX;
use crate::decide::ask::StepBinding;
use crate::decide::{Bound, Command, CommandOrigin, DecideContext, Decided, Rendered, decide, open, start};
use crate::governance::action::Action;
use crate::governance::judge::{AllowDeclared, Decision, Judge, Judged, Ruling};
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{BlastRadius, OnFailure, Plan, StepSpec, WaitFor, Work};
use crate::rejection::Rejection;
use crate::run::approval::Purpose;
use crate::run::change::Context;
use crate::run::{Phase, Step};
use crate::state::{ApprovalState, EffectClass, Reason, ReceiptState, RunState, StepKind, StepState};

fn judged(plan: Plan, judge: impl Judge + 'static) -> Case {
    Opening { judge: Arc::new(judge), ..Opening::of(plan) }.start()
}

/// An answer to a step that is about to begin, with which it must not begin.
#[derive(Debug)]
enum Answered {
    By(Decision),
    /// Everything was found out, and no decision was asked for.
    WithoutDecision,
}

impl Answered {
    fn bound(&self, case: &Case, asking: &crate::decide::Asking<'_>) -> Bound {
        match self {
            Self::By(decision) => bound(&case.answers, &Always(decision.clone()), asking),
            Self::WithoutDecision => match bound(&case.answers, &AllowDeclared, asking).0 {
                StepBinding::Go(rendered, _, also) => Bound(StepBinding::Go(rendered, None, also)),
                found => Bound(found),
            },
        }
    }
}

fn unavailable() -> Decision {
    Decision::Undecided { why: "the policy cannot be read".into() }
}

/// The person whose request led there has paused nothing.
#[test]
fn a_run_on_which_the_policy_cannot_decide_was_paused_by_nobody() {
    let (judge, by) = (Arc::new(Always(unavailable())), Context::operator("olga"));
    let case = Opening { judge, by, ..Opening::of(tasks(1)) }.start();
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::PolicyUnavailable)));
    let pause = case.run.notes.pause.as_ref().unwrap();
    assert_eq!((&pause.by, pause.reason.contains("the policy could not decide")), (&None, true), "{pause:?}");
}

/// Whatever the command and the run: without an answer, no step begins that would have to be judged, evaluated or
/// undone. A step does not begin either where the judge denies everything or cannot decide, or where the answer has no
/// decision.
#[test]
fn nothing_begins_unanswered_or_denied() {
    let mut runner = TestRunner::default();
    let strategy = (any_plan(), any_moves(MOVES_MAX));
    let checked = runner.run(&strategy, |(plan, steps)| {
        let mut opening = Opening::of(plan);
        opening.answers = moves::answers(&opening.plan);
        let mut case = opening.start();
        for step in steps {
            if case.run.state.is_terminal() {
                break;
            }
            let command = moves::next(&mut case, step);
            let known = DecideContext { receipt: case.open_receipt(), ..DecideContext::default() };
            match decide(&case.run, command.clone(), known, case.asked()) {
                // Without an answer nothing that asks has begun.
                Ok(Decided::Change(change)) => {
                    for (position, step) in &change.delta.steps {
                        let before = case.run.steps.get(*position as usize);
                        let was = before.map_or(StepState::Pending, Step::state);
                        let began = was == StepState::Pending && step.state() == StepState::Ready;
                        let spec = match &change.delta.added {
                            Some(added) => added.get(*position as usize - case.run.forward_len()).cloned(),
                            None => None,
                        };
                        let spec = spec.unwrap_or_else(|| case.run.spec(*position).clone());
                        let asks = spec.is_governed() || spec.is_rendered() || spec.condition.is_some();
                        prop_assert!(!(began && asks), "step {position} began unasked after {command:?}");
                    }
                }
                Ok(Decided::Needs(asking)) => {
                    let (position, governed) = (asking.position(), asking.spec().is_governed());
                    for answer in [Answered::By(denied()), Answered::By(unavailable()), Answered::WithoutDecision] {
                        let known = DecideContext { receipt: case.open_receipt(), ..DecideContext::default() };
                        let decided = decide(&case.run, command.clone(), known, case.asked()).unwrap();
                        let change = decided.settle(|asking| answer.bound(&case, asking));
                        let began = |(at, step): &(u32, Step)| {
                            *at == position && matches!(step.state(), StepState::Ready | StepState::Running)
                        };
                        let began = change.is_ok_and(|change| change.delta.steps.iter().any(began));
                        prop_assert!(!(governed && began), "{position} began, {answer:?}: {command:?}");
                    }
                }
                Err(_) => {}
            }
            super::arrows::take();
            let _ = case.ask(command);
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn a_judge_is_asked_about_every_step_that_changes_something() {
    let case = judged(tasks(2), Always(denied()));
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::PolicyDenied)));
    let error = case.step(0).last_error.clone().unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("POLICY_DENIED", "not on a Friday"));
    let read = judged(plan(vec![task("r").effect(EffectClass::Read)]), Always(denied()));
    assert_eq!(read.step(0).state(), StepState::Ready, "what only reads proposes nothing");
    let pure = judged(plan(vec![transform("t")]), Always(denied()));
    assert_eq!(pure.step(0).state(), StepState::Ready);
}

#[test]
fn an_action_may_need_the_approval_of_people() {
    let mut case = judged(tasks(2), Always(asks()));
    assert_eq!((case.state(), case.step(0).state()), (RunState::WaitingApproval, StepState::WaitingApproval));
    let no = case.refuse(Command::Claim { session: super::case::session(1) });
    assert!(matches!(no, Rejection::InvalidTransition { .. }), "{no}");
    case.tells(|case| case.vote("rob", true)).claim().complete();
    assert_eq!(case.steps(), [StepState::Succeeded, StepState::WaitingApproval], "each action asks for itself");
}

#[test]
fn a_rollback_is_judged_like_what_it_undoes() {
    #[derive(Debug)]
    struct NoUndoing(Decision);
    impl Judge for NoUndoing {
        fn judge(&self, action: &crate::governance::action::Action, _: &crate::run::Run) -> Ruling {
            if action.kind == StepKind::Rollback { self.0.clone().into() } else { Decision::Allow.into() }
        }
    }
    let undoable = || plan(vec![task("a").undoable(), task("b")]);
    let mut case = judged(undoable(), NoUndoing(denied()));
    case.run_step().claim().dies();
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::RollbackFailed)));
    let mut case = judged(undoable(), NoUndoing(asks()));
    case.run_step().claim().dies();
    assert_eq!(case.step(2).state(), StepState::WaitingApproval);
    case.tells(|case| case.vote("rob", true)).until_eligible();
    assert!(case.now >= START + DecideContext::default().settles_after, "not before what was lost has arrived");
    case.claim().complete();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
}

/// An answer that leaves something out, or is about something else, is refused.
#[test]
fn half_an_answer_is_none() {
    let answer = |step: StepSpec, answer: &dyn Fn(&crate::decide::Asking<'_>) -> Bound| {
        let (run, opening) = open(Opening::of(plan(vec![step])).request()).unwrap();
        start(&run, opening, CommandOrigin::system(START)).unwrap().settle(answer).map(|_| ())
    };
    let nothing = |asking: &crate::decide::Asking<'_>| asking.bind(Rendered::default(), &AllowDeclared);
    let until = Work::Wait { until: WaitFor::Until("${{ inputs.at }}".into()), timeout: None };
    let with = Work::Task { handler: "t".into(), with: Some(json("{}")) };
    for work in [until, with, Work::Transform { value: json("1") }] {
        let no = answer(StepSpec::new("s", work), &nothing).unwrap_err();
        assert!(matches!(no, Rejection::NotBound { .. }), "{no}");
    }
    let no = answer(task("s"), &|_| Bound::condition_false()).unwrap_err();
    assert!(matches!(no, Rejection::NotBound { .. }), "it has no condition that could be false: {no}");
    // A decision on another input is a decision on another action.
    let mut other = None;
    let with = StepSpec::new("s", Work::Task { handler: "t".into(), with: Some(json("{}")) });
    let input = |text: &str| Rendered { input: Some(json(text)), ..Rendered::default() };
    let (run, opening) = open(Opening::of(plan(vec![with.clone()])).request()).unwrap();
    let _ = start(&run, opening, CommandOrigin::system(START)).unwrap().settle(|asking| {
        other = Some(asking.bind(input(r#"{"to":"staging"}"#), &AllowDeclared));
        Bound::broken(super::case::error(crate::plan::retry::ErrorClass::Invalid))
    });
    let Some(Bound(StepBinding::Go(_, leave, _))) = other else { panic!() };
    let forged = Bound(StepBinding::Go(input(r#"{"to":"production"}"#), leave, Vec::new()));
    let no = answer(with, &|_| forged.clone()).unwrap_err();
    assert!(matches!(no, Rejection::NotBound { .. }), "{no}");
}

/// An effect of a running step that is denied ends the step; one that needs approval waits for it, and is permitted once.
#[test]
fn effects_are_judged_for_themselves() {
    #[derive(Debug)]
    struct OnPay(Decision);
    impl Judge for OnPay {
        fn judge(&self, action: &crate::governance::action::Action, _: &crate::run::Run) -> Ruling {
            if action.operation == "pay" { self.0.clone().into() } else { Decision::Allow.into() }
        }
    }
    let mut case = judged(tasks(1), OnPay(denied()));
    case.claim().tells(|case| case.intent(EffectClass::Keyed));
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::PolicyDenied)));
    assert!(!crate::decide::is_recorded(&case.run, 0, 1), "its worker has reported nothing");

    let mut case = judged(tasks(1), OnPay(asks()));
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    assert_eq!(case.step(0).state(), StepState::WaitingApproval);
    assert!(!crate::decide::is_recorded(&case.run, 0, 1), "its worker has reported nothing");
    case.tells(|case| case.vote("rob", true)).claim();
    let permitted = case.intent(EffectClass::Unsafe);
    assert!(matches!(permitted, Command::RecordIntent { .. }), "{permitted:?}");
    let other = case.intent(EffectClass::Keyed);
    assert!(matches!(other, Command::WithholdEffect { .. }), "another effect was not agreed to");
    case.tell(permitted).tells(|case| case.outcome(ReceiptState::Succeeded));
    let again = case.intent(EffectClass::Unsafe);
    assert!(matches!(again, Command::WithholdEffect { .. }), "they agreed to it once");
}

/// People who let a step begin have agreed to what it declares: effects that go no further need no second question.
#[test]
fn an_approved_step_performs_what_it_declares() {
    let mut case = judged(tasks(1), Always(asks()));
    assert_eq!(case.step(0).state(), StepState::WaitingApproval);
    case.tells(|case| case.vote("rob", true)).claim();
    let declared = case.intent(EffectClass::Idempotent);
    assert!(matches!(declared, Command::RecordIntent { .. }), "{declared:?}");
    let further = case.intent(EffectClass::Unsafe);
    assert!(matches!(further, Command::WithholdEffect { .. }), "no approver has agreed to this");
    // Nor does the approval hold for another try that an operator orders.
    case.tell(further);
    assert_eq!(case.step(0).state(), StepState::WaitingApproval);
}

/// Leave that was not used within its time is none: the step is asked anew before it is handed out, or its effect is.
#[test]
fn agreement_lapses() {
    let mut case = judged(tasks(1), Always(asks()));
    case.tells(|case| case.vote("rob", true));
    case.now = case.now + limits::GRANT_TTL;
    let late = case.ask(Command::Claim { session: session(1) }).err();
    assert!(matches!(late, Some(Rejection::NotClaimable { .. })), "{late:?}");
    let asked = case.withhold_step(asks()).expect("no agreement holds any more");
    case.tell(asked);
    assert_eq!((case.step(0).state(), case.run.notes.agreed.len()), (StepState::WaitingApproval, 0));
    case.tells(|case| case.vote("rob", true)).claim();
    // The task took its time before it asked.
    case.now = case.now + limits::GRANT_TTL;
    let late = case.intent(EffectClass::Idempotent);
    assert!(matches!(late, Command::WithholdEffect { .. }), "{late:?}");
}

/// Where the rules have changed and need no approval by now, a lapsed agreement does not stop the step.
#[test]
fn what_needs_no_agreement_any_more_is_handed_out() {
    let mut case = judged(tasks(1), Always(asks()));
    case.tells(|case| case.vote("rob", true));
    case.now = case.now + limits::GRANT_TTL;
    case.judge = Arc::new(AllowDeclared);
    let action = crate::governance::action::Action::of_step(case.run.spec(0), 0, case.run.input(0)).unwrap();
    let grant = Box::new(Judged::by(&AllowDeclared, action, &case.run).grant(&case.run, case.now).unwrap());
    case.tell(Command::ClaimWithGrant { session: session(1), grant, names_effects: false });
    assert_eq!((case.step(0).state(), case.run.notes.agreed.len()), (StepState::Running, 0));
}

#[test]
fn leave_for_one_effect_is_none_for_another() {
    let mut case = Case::of(tasks(1));
    case.claim();
    let Command::RecordIntent { position, attempt, mut receipt, grant, again, hold } = case.intent(EffectClass::Unsafe)
    else {
        unreachable!()
    };
    receipt.request = json(r#"{"to":"somebody else"}"#);
    let no = case.refuse(Command::RecordIntent { position, attempt, receipt, grant, again, hold });
    assert!(matches!(no, Rejection::NotGranted { .. }), "{no}");
}

#[test]
fn what_is_no_longer_allowed_is_not_handed_out() {
    let mut case = Case::of(tasks(1));
    let command = case.withhold_step(denied()).unwrap();
    case.tell(command);
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::PolicyDenied)));
    let mut case = Case::of(tasks(1));
    let command = case.withhold_step(asks()).unwrap();
    case.tell(command);
    assert_eq!(case.step(0).state(), StepState::WaitingApproval);
    case.tells(|case| case.vote("rob", true)).run_step();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn a_denied_retry_leaves_the_run_where_it_stands() {
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..tasks(1) });
    case.claim().dies();
    case.judge = Arc::new(Always(denied()));
    let no = case.refuse(retry());
    assert_eq!(no.code(), "POLICY_DENIED");
    case.judge = Arc::new(Always(asks()));
    case.tell(retry());
    assert_eq!(case.step(0).state(), StepState::WaitingApproval);
}

fn approved(radius: BlastRadius) -> Case {
    let step = StepSpec { blast_radius: Some(radius), ..task("a").attempts(3) };
    let mut case = judged(plan(vec![step]), Always(asks()));
    case.tells(|case| case.vote("rob", true)).claim();
    case
}

/// People have agreed to one try of what reaches further than `low`.
#[test]
fn another_try_asks_again_by_how_far_it_reaches() {
    for radius in [BlastRadius::Medium, BlastRadius::High] {
        let mut case = approved(radius);
        case.fails(ErrorClass::Unavailable).claim();
        let Phase::WaitingApproval(asked) = &case.step(0).phase else { panic!("{:?}", case.step(0)) };
        assert_eq!((asked.purpose, asked.state), (Purpose::Retry, ApprovalState::Requested));
        let message = asked.message.as_deref().unwrap();
        assert!(message.contains("It would be try 2") && message.contains("it reaches far"), "{message}");
        case.tells(|case| case.vote("rob", true)).run_step();
        assert_eq!(case.state(), RunState::Succeeded);
    }
    let mut case = approved(BlastRadius::Low);
    case.fails(ErrorClass::Unavailable).claim().complete();
    assert_eq!(case.state(), RunState::Succeeded);
}

/// What was given back, lost or certainly did nothing is no try.
#[test]
fn what_did_nothing_is_tried_again_on_the_same_word() {
    let named = |case: &mut Case| {
        let action = Action::of_step(case.run.spec(0), 0, case.run.input(0)).unwrap();
        let grant = Box::new(Judged::by(&*case.judge, action, &case.run).grant(&case.run, case.now).unwrap());
        case.tell(Command::ClaimWithGrant { session: session(1), grant, names_effects: true });
    };
    let ready = || {
        let mut case = judged(plan(vec![task("a").attempts(5)]), Always(asks()));
        case.tells(|case| case.vote("rob", true));
        case
    };
    let asks_again = |mut case: Case| {
        case.claim();
        case.step(0).state() == StepState::WaitingApproval
    };
    let mut case = ready();
    named(&mut case);
    case.fails(ErrorClass::Unavailable);
    assert!(!asks_again(case), "it asked for no effect");
    let mut case = ready();
    named(&mut case);
    case.tells(|case| case.intent(EffectClass::Idempotent)).tells(Case::lease_expired);
    assert!(asks_again(case), "it may have happened");
    let mut case = ready();
    named(&mut case);
    case.tells(Case::lease_expired);
    assert!(!asks_again(case), "a worker that asks first was lost before it asked");
    let mut case = ready();
    case.claim().tells(Case::release);
    assert!(asks_again(case), "it is not known what this one has done");
    let mut case = ready();
    case.claim().tells(|case| Command::Undelivered { position: 0, attempt: case.step(0).attempt });
    assert!(!asks_again(case), "no worker ever got it");
    let unknown = |case: &Case| Command::UnknownTask { position: 0, attempt: case.step(0).attempt };
    let mut case = ready();
    case.claim().tells(unknown);
    assert!(!asks_again(case), "a worker that does not know the task cannot have done it");
    let mut case = ready();
    named(&mut case);
    case.tells(|case| case.intent(EffectClass::Idempotent)).tells(unknown);
    assert!(asks_again(case), "it has named an effect before it said so");
}
