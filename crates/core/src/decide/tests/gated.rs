//! A gate's vote is about what the steps behind it are about to do.

use super::case::{Answer, Case, Opening, json, skip};
use super::plans::{gate, plan, task, transform};
use crate::decide::Command;
use crate::plan::{OnDenial, OnFailure, Plan, StepSpec, Work};
use crate::run::Phase;
use crate::run::approval::Approval;
use crate::state::{RunState, StepState};

fn rendered(key: &str) -> StepSpec {
    StepSpec::new(key, Work::Task { handler: "work".into(), with: Some(json(r#"{"to":"${{ inputs.to }}"}"#)) })
}

/// A gate before two steps, and another gate before a third.
fn gated() -> Plan {
    let mut last = task("b");
    last.condition = Some("inputs.go".into());
    let steps =
        vec![gate("ok", OnDenial::Fail), transform("t"), rendered("a"), last, gate("ok2", OnDenial::Fail), task("c")];
    plan(steps)
}

fn opened(answers: &[(u32, Answer)]) -> Case {
    let mut opening = Opening::of(gated());
    opening.answers.extend(answers.iter().cloned());
    opening.start()
}

fn approval(case: &Case) -> &Approval {
    let Phase::WaitingApproval(approval) = &case.run.current().phase else { panic!("{:?}", case.run.current()) };
    approval
}

#[test]
fn a_gate_shows_what_it_guards_and_nothing_of_the_next_one() {
    let case = opened(&[(2, Answer::input(r#"{"to":"staging"}"#))]);
    let asked = approval(&case);
    let card = asked.action.as_deref().unwrap();
    assert!(card.is_gate());
    let shown: Vec<_> = card.actions().map(|action| (action.step.as_str(), action.input.as_str())).collect();
    assert_eq!(shown[0], ("a", r#"{"to":"staging"}"#));
    assert_eq!((shown.len(), shown[1].0, card.then[1].only_if.as_deref()), (2, "b", Some("inputs.go")));
    let bound: Vec<u32> = asked.guards.iter().map(|guarded| guarded.step).collect();
    assert_eq!(bound, [2, 3]);
}

#[test]
fn what_cannot_be_told_yet_is_said_and_not_bound() {
    let mut case = opened(&[(2, Answer::Broken)]);
    let asked = approval(&case);
    let card = &asked.action.as_deref().unwrap().then[0];
    assert_eq!((card.step.as_str(), card.unknown.as_deref()), ("a", Some("it cannot be told")));
    assert_eq!(asked.guards.len(), 1);
    case.answers.insert(2, Answer::input(r#"{"to":"staging"}"#));
    case.tells(|case| case.vote("ann", true)).run_step();
    assert_eq!(case.step(2).state(), StepState::Ready, "people let it pass without knowing");
}

#[test]
fn what_was_foreseen_goes_on_unasked() {
    let mut case = opened(&[(2, Answer::input(r#"{"to":"staging"}"#))]);
    case.tells(|case| case.vote("ann", true)).run_step();
    assert_eq!((case.step(2).state(), case.run.notes.foreseen.len()), (StepState::Ready, 2));
    case.run_step();
    assert_eq!(
        (case.step(3).state(), case.run.notes.foreseen.len()),
        (StepState::Ready, 1),
        "what is done is forgotten"
    );
    case.run_step();
    assert!(case.run.notes.foreseen.is_empty());
    assert_eq!(approval(&case).action.as_deref().unwrap().then[0].step, "c", "the next gate has its own");
}

#[test]
fn what_has_changed_since_asks_the_gates_people_with_the_difference() {
    let mut case = opened(&[(2, Answer::input(r#"{"to":"staging"}"#))]);
    case.answers.insert(2, Answer::input(r#"{"to":"production"}"#));
    case.tells(|case| case.vote("ann", true)).run_step();
    assert_eq!((case.state(), case.step(2).state()), (RunState::WaitingApproval, StepState::WaitingApproval));
    let asked = approval(&case);
    let message = asked.message.as_deref().unwrap();
    assert!(message.contains("step `a`") || message.contains("Step `a`"), "{message}");
    assert!(message.contains(r#"- to: "staging""#) && message.contains(r#"+ to: "production""#), "{message}");
    assert_eq!((asked.approvers.as_slice(), asked.quorum), (["sre".to_owned()].as_slice(), 1));
    assert_eq!(asked.action.as_deref().unwrap().input.as_str(), r#"{"to":"production"}"#, "what is asked about is new");
    case.tells(|case| case.vote("ann", true));
    assert_eq!(case.step(2).state(), StepState::Ready);
    case.run_step();
    assert_eq!(case.step(3).state(), StepState::Ready, "what has not changed is not asked about");
}

/// A gate that people have skipped has no less to say than one that they have passed.
#[test]
fn what_has_changed_since_asks_also_where_its_gate_was_skipped_meanwhile() {
    let steps = vec![gate("ok", OnDenial::Pause), task("a"), rendered("b")];
    let plan = Plan { on_failure: Some(OnFailure::Pause), ..plan(steps) };
    let mut opening = Opening::of(plan);
    opening.answers.insert(2, Answer::input(r#"{"to":"staging"}"#));
    let mut case = opening.start();
    case.tells(|case| case.vote("ann", true)).claim().dies();
    case.tell(Command::RestartFrom { position: 1 }).tells(|case| case.vote("bob", false));
    case.tell(skip());
    assert_eq!((case.step(0).state(), case.step(1).state()), (StepState::Skipped, StepState::Ready));
    case.answers.insert(2, Answer::input(r#"{"to":"production"}"#));
    case.run_step();
    assert_eq!(case.step(2).state(), StepState::WaitingApproval);
    assert_eq!(approval(&case).approvers, ["sre"]);
}
