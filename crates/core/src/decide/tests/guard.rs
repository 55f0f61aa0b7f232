//! What an approval guards: no person goes past a gate, or runs again what it guards, without the people that it names.

use super::case::{Case, Opening, STARTER, cancel, json, pause, retry, roll_back, skip, skip_by, voter};
use super::plans::{Tuned, gate, plan, signal, task, transform};
use crate::decide::{Command, CommandOrigin, resume};
use crate::plan::retry::ErrorClass;
use crate::plan::{OnDenial, OnFailure, Plan, StepSpec, Work};
use crate::rejection::Rejection;
use crate::run::Phase;
use crate::run::approval::{Approval, Purpose, Voter};
use crate::run::change::{Context, SideWrite};
use crate::state::{ApprovalState, Control, Initiator, Reason, RunState, StepState};
use crate::time::Millis;

fn two_keys(key: &str) -> StepSpec {
    let mut step = gate(key, OnDenial::Pause);
    let Work::Approval(gate) = &mut step.work else { unreachable!() };
    gate.quorum = 2;
    step
}

/// `ok` needs two people and was rejected; `delete` stands behind it.
fn rejected() -> Case {
    let mut case = Case::of(plan(vec![two_keys("ok"), task("delete")]));
    case.tells(|case| case.vote("rob", false));
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::ApprovalRejected)));
    case
}

fn approval(case: &Case) -> &Approval {
    let Phase::WaitingApproval(approval) = &case.run.current().phase else { panic!("{:?}", case.run.current()) };
    approval
}

fn why_not(case: &mut Case, command: Command) -> String {
    match case.refuse(command) {
        no @ Rejection::DirectiveNotPermitted { .. } => no.to_string(),
        other => panic!("{other}"),
    }
}

#[test]
fn whoever_started_the_run_does_not_skip_its_rejected_gate() {
    let mut case = rejected();
    let no = why_not(&mut case, skip_by(STARTER));
    assert!(no.contains("`ok`") && no.contains("2 of those") && no.contains("may not decide"), "{no}");
    assert_eq!(case.steps(), [StepState::WaitingApproval, StepState::Pending]);
}

#[test]
fn a_key_and_whoever_is_in_none_of_the_groups_do_not_skip_it_either() {
    let mut case = rejected();
    let no = why_not(&mut case, Command::Skip { reason: "now".into(), voter: None });
    assert!(no.contains("never keys"), "{no}");
    let outsider = Box::new(Voter { groups: vec!["sales".into()], ..voter("eve") });
    let no = why_not(&mut case, Command::Skip { reason: "now".into(), voter: Some(outsider) });
    assert!(no.contains("none of the groups sre"), "{no}");
    let author = Box::new(Voter { author: Some("amy".into()), ..voter("amy") });
    let no = why_not(&mut case, Command::Skip { reason: "now".into(), voter: Some(author) });
    assert!(no.contains("wrote this version"), "{no}");
}

#[test]
fn as_many_people_as_the_gate_needs_skip_it_and_the_record_says_who() {
    let mut case = rejected();
    let gate = approval(&case).id;
    case.tell(skip_by("ann"));
    let asked = approval(&case);
    assert_ne!(asked.id, gate, "an approval of its own");
    assert_eq!((asked.purpose, asked.state, asked.quorum), (Purpose::Skip, ApprovalState::Requested, 2));
    assert!(asked.message.as_ref().unwrap().contains("done by hand"), "{asked:?}");
    assert_eq!(case.names(), ["approval.requested", "approval.voted"]);
    assert_eq!((case.state(), case.run.control), (RunState::Paused, Control::Paused));
    assert!(why_not(&mut case, skip_by("ann")).contains("one vote"));
    case.tell(skip_by("bob"));
    assert_eq!(case.steps(), [StepState::Skipped, StepState::Ready]);
    assert_eq!(case.names(), ["approval.voted", "approval.resolved", "execution.step.skipped", "session.resumed"]);
    let Phase::Skipped { why } = &case.step(0).phase else { panic!() };
    assert_eq!(why, "by ann, bob: done by hand");
    let put = case.change.side.iter().find_map(|side| match side {
        SideWrite::PutApproval { approval, .. } => Some((approval.purpose, approval.state)),
        _ => None,
    });
    assert_eq!(put, Some((Purpose::Skip, ApprovalState::Approved)));
}

#[test]
fn the_second_person_may_vote_instead() {
    let mut case = rejected();
    case.tell(skip_by("ann")).tells(|case| case.vote("bob", true));
    assert_eq!(case.steps(), [StepState::Skipped, StepState::Ready]);
    assert_eq!((case.state(), case.run.control), (RunState::Pending, Control::Active));
}

#[test]
fn a_rejected_skip_leaves_the_gate_as_it_was() {
    let mut case = rejected();
    case.tell(skip_by("ann")).tells(|case| case.vote("bob", false));
    assert_eq!((case.state(), case.steps()), (RunState::Paused, vec![StepState::WaitingApproval, StepState::Pending]));
    assert!(matches!(case.refuse(Command::Resume), Rejection::DirectiveDue { .. }));
    // It can be asked for again, by two others.
    case.tell(skip_by("cat")).tell(skip_by("dan"));
    assert_eq!(case.step(0).state(), StepState::Skipped);
}

#[test]
fn a_request_to_skip_expires_and_resume_does_not_pass_it() {
    let mut case = rejected();
    case.tell(skip_by("ann"));
    assert!(matches!(case.refuse(Command::Resume), Rejection::DirectiveDue { .. }));
    case.after(Millis::from_hours(24));
    why_not(&mut case, skip_by("bob"));
    case.tell(Command::Tick);
    assert_eq!((case.state(), approval(&case).state), (RunState::Paused, ApprovalState::Expired));
    case.tell(skip_by("ann"));
    assert_eq!(approval(&case).votes.len(), 1, "the old vote does not count for the new request");
}

#[test]
fn what_overtakes_a_request_to_skip_closes_it() {
    for command in [retry(), Command::RestartFrom { position: 0 }, cancel(false)] {
        let mut case = rejected();
        case.tell(skip_by("ann"));
        let asked = approval(&case).id;
        case.tell(command);
        let closed = case.change.side.iter().any(|side| match side {
            SideWrite::PutApproval { approval, .. } => {
                approval.id == asked && approval.state == ApprovalState::Canceled
            }
            _ => false,
        });
        assert!(closed, "{:?}", case.change.side);
    }
}

#[test]
fn a_gate_that_failed_or_expired_is_a_gate_all_the_same() {
    let mut failed =
        Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(vec![gate("ok", OnDenial::Fail), task("delete")]) });
    failed.tells(|case| case.vote("rob", false));
    assert_eq!(failed.step(0).state(), StepState::Failed);
    why_not(&mut failed, skip_by(STARTER));
    failed.tell(skip_by("ann"));
    assert_eq!(failed.steps(), [StepState::Skipped, StepState::Ready]);
    let mut expired = Case::of(plan(vec![two_keys("ok"), task("delete")]));
    expired.after(Millis::from_hours(24)).tell(Command::Tick);
    why_not(&mut expired, skip_by(STARTER));
    expired.tell(skip_by("ann")).tell(skip_by("bob"));
    assert_eq!(expired.step(0).state(), StepState::Skipped);
}

#[test]
fn rollback_and_cancel_need_nobody() {
    let steps = vec![task("a").undoable(), two_keys("ok"), task("delete")];
    for command in [roll_back(), cancel(true), cancel(false)] {
        let mut case = Case::of(plan(steps.clone()));
        case.run_step().tells(|case| case.vote("rob", false)).tell(command);
        assert!(!matches!(case.state(), RunState::Paused));
    }
}

/// Who agreed to skip one gate has not asked for what the next one guards; who asks a gate anew has.
#[test]
fn whoever_directs_the_run_has_no_vote_at_any_later_gate() {
    let mut case = Case::of(plan(vec![gate("one", OnDenial::Pause), gate("two", OnDenial::Pause), task("t")]));
    case.tells(|case| case.vote("rob", false)).tell(skip_by("ann"));
    assert_eq!(approval(&case).excluded, [STARTER]);
    case.tells(|case| case.vote("rob", false));
    case.ask_by(retry(), CommandOrigin { now: case.now, by: Context::operator("bob") }).unwrap();
    case.tells(|case| case.vote("rob", false));
    case.ask_by(retry(), CommandOrigin { now: case.now, by: Context::operator("cat") }).unwrap();
    assert_eq!(approval(&case).excluded, [STARTER, "bob", "cat"]);
    case.tells(|case| case.vote("rob", false));
    why_not(&mut case, skip_by("bob"));
}

/// Whatever became of the gate while the run was paused, an operator can say what is to become of the run.
#[test]
fn a_gate_that_is_refused_while_the_run_is_paused_leaves_a_way_on() {
    for rule in OnDenial::ALL {
        let paused = || {
            let mut case = Case::of(plan(vec![gate("ok", *rule), task("t")]));
            case.tell(pause()).tells(|case| case.vote("rob", false));
            assert_eq!(case.state(), RunState::Paused);
            case
        };
        let no = paused().refuse(Command::Resume);
        assert!(no.to_string().contains("retry") && no.to_string().contains("cancel"), "{no}");
        let mut asked = paused();
        asked.tell(retry()).tells(|case| case.vote("rob", true));
        assert_eq!(asked.steps(), [StepState::Succeeded, StepState::Ready]);
        assert_eq!(paused().tell(skip()).steps(), [StepState::Skipped, StepState::Ready]);
        assert_eq!(paused().tell(cancel(false)).state(), RunState::Canceled);
    }
}

/// `ok` was approved, `delete` has failed.
fn failed_behind_a_gate() -> Case {
    let steps = vec![two_keys("ok"), task("prepare"), task("delete"), task("after")];
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(steps) });
    case.tells(|case| case.vote("rob", true)).tells(|case| case.vote("sue", true));
    case.run_step().claim().dies();
    case
}

fn by(person: &str, case: &Case) -> CommandOrigin {
    CommandOrigin { by: Context::operator(person), now: case.now }
}

#[test]
fn a_guarded_step_is_not_run_again_on_the_old_approval() {
    let mut case = failed_behind_a_gate();
    case.ask_by(retry(), by(STARTER, &case)).unwrap();
    assert_eq!((case.run.position, case.state()), (2, RunState::WaitingApproval));
    let asked = approval(&case);
    assert_eq!((asked.purpose, asked.quorum), (Purpose::Retry, 2));
    assert!(asked.message.as_ref().unwrap().contains("with the same input"), "{asked:?}");
    case.refuse(Command::Claim { session: super::case::session(1) });
    case.tells(|case| case.vote("rob", true)).tells(|case| case.vote("sue", true));
    assert_eq!((case.step(2).state(), case.step(2).iteration), (StepState::Ready, 1));
    case.run_step().run_step();
    assert_eq!(case.state(), RunState::Succeeded);
}

#[test]
fn a_changed_input_is_shown_to_whoever_is_asked_again() {
    let mut case = failed_behind_a_gate();
    case.ask_by(Command::Retry { input: Some(json(r#"{"target":"PRODUCTION"}"#)) }, by("bob", &case)).unwrap();
    let asked = approval(&case);
    let message = asked.message.as_ref().unwrap();
    assert!(message.contains("- order: 7") && message.contains(r#"+ target: "PRODUCTION""#), "{message}");
    assert_eq!(asked.excluded, [STARTER, "bob"]);
    case.tells(|case| case.vote("rob", true)).tells(|case| case.vote("sue", true));
    assert_eq!((case.step(2).state(), case.run.input(2)), (StepState::Ready, json(r#"{"target":"PRODUCTION"}"#)));
}

#[test]
fn a_difference_too_long_to_be_shown_is_refused() {
    let mut case = failed_behind_a_gate();
    let long = format!(r#"{{"text":"{}"}}"#, "ä".repeat(20_000));
    let asked = by("bob", &case);
    let no = case.ask_by(Command::Retry { input: Some(json(&long)) }, asked).map(|_| ()).unwrap_err();
    assert!(matches!(&no, Rejection::InvalidInput { what } if what.contains("start a new run")), "{no}");
    assert_eq!(case.state(), RunState::Paused, "nothing was changed");
}

/// What a field is called must not pass for a line of the difference.
#[test]
fn a_forged_line_is_shown_as_what_it_is() {
    let mut case = failed_behind_a_gate();
    let forged = r#"{"order":7,"note\n- target: production\n+ target: staging":1}"#;
    let asked = by("bob", &case);
    case.ask_by(Command::Retry { input: Some(json(forged)) }, asked).unwrap();
    let message = approval(&case).message.clone().unwrap();
    assert!(!message.lines().any(|line| line.starts_with("- target") || line.starts_with("+ target")), "{message}");
}

/// What approvers have refused is neither run nor skipped by one operator alone.
#[test]
fn a_refused_retry_is_neither_retried_past_nor_skipped_alone() {
    let mut case = failed_behind_a_gate();
    case.ask_by(retry(), by("bob", &case)).unwrap();
    case.tells(|case| case.vote("rob", false));
    assert_eq!((case.state(), case.step(2).state()), (RunState::Paused, StepState::WaitingApproval));
    why_not(&mut case, skip_by(STARTER));
    case.ask_by(retry(), by("bob", &case)).unwrap();
    assert_eq!(approval(&case).state, ApprovalState::Requested, "it is asked anew");
    case.tells(|case| case.vote("rob", false)).tell(skip_by("ann")).tell(skip_by("cat"));
    assert_eq!(case.steps()[2..], [StepState::Skipped, StepState::Ready]);
}

#[test]
fn a_wait_behind_a_gate_is_opened_anew_and_an_ungated_step_runs_again() {
    let late = signal("w", Some(Millis(10))).when_failed(OnFailure::Pause);
    let mut case = Case::of(plan(vec![gate("ok", OnDenial::Fail), late]));
    case.tells(|case| case.vote("rob", true)).until_wake().tell(Command::Tick).tell(retry());
    assert_eq!(case.state(), RunState::WaitingSignal);
    let input = Command::Retry { input: Some(json("1")) };
    let mut case = Case::of(plan(vec![gate("ok", OnDenial::Pause), task("t")]));
    case.tells(|case| case.vote("rob", false));
    assert!(matches!(case.refuse(input), Rejection::InvalidInput { .. }), "a gate takes no input");
}

#[test]
fn going_back_behind_a_gate_asks_it_anew() {
    use StepState::{Pending, Ready, Succeeded, WaitingApproval};
    let mut case = failed_behind_a_gate();
    case.tell(Command::RestartFrom { position: 2 });
    assert_eq!(case.steps(), [WaitingApproval, Succeeded, Pending, Pending]);
    case.tells(|case| case.vote("rob", true)).tells(|case| case.vote("sue", true));
    assert_eq!(case.steps(), [Succeeded, Succeeded, Ready, Pending]);
}

#[test]
fn gates_with_nothing_between_them_guard_together() {
    let steps = vec![gate("one", OnDenial::Fail), transform("x"), gate("two", OnDenial::Fail), task("t")];
    let mut case = Case::of(Plan { on_failure: Some(OnFailure::Pause), ..plan(steps) });
    case.tells(|case| case.vote("rob", true)).run_step().tells(|case| case.vote("rob", true));
    case.claim().dies();
    assert!(matches!(case.refuse(Command::Retry { input: Some(json("1")) }), Rejection::InvalidInput { .. }));
    case.tell(retry());
    assert_eq!((case.run.position, case.state()), (0, RunState::WaitingApproval));
    case.tells(|case| case.vote("rob", true));
    assert_eq!((case.run.position, case.state()), (2, RunState::WaitingApproval), "what stands between is kept");
    case.tells(|case| case.vote("rob", true));
    assert_eq!(case.step(3).state(), StepState::Ready);
}

/// The run made from one that has ended.
fn resumed(case: &Case, from: Option<u32>) -> Case {
    let resumed = resume(&case.run, from).unwrap();
    let plan = (*case.run.plan).clone();
    Opening { inherited: resumed.inherited, starters: resumed.starters, run: 2, ..Opening::of(plan) }.start()
}

#[test]
fn a_new_run_inherits_no_approval_of_what_it_executes() {
    let mut done = Case::of(plan(vec![two_keys("ok"), task("delete")]));
    done.tells(|case| case.vote("rob", true)).tells(|case| case.vote("sue", true)).run_step();
    assert_eq!(done.state(), RunState::Succeeded);
    let again = resumed(&done, Some(1));
    assert_eq!(again.steps(), [StepState::WaitingApproval, StepState::Pending]);

    let mut failed = failed_behind_a_gate();
    failed.tell(cancel(false));
    let mut again = resumed(&failed, None);
    assert_eq!(again.steps()[..3], [StepState::WaitingApproval, StepState::Succeeded, StepState::Pending]);
    again.tells(|case| case.vote("rob", true)).tells(|case| case.vote("sue", true));
    assert_eq!(again.run.position, 2, "what was done is not done again");
}

#[test]
fn a_new_run_inherits_an_approval_whose_steps_are_all_done() {
    let steps = vec![gate("one", OnDenial::Fail), task("a"), gate("two", OnDenial::Fail), task("b")];
    let mut case = Case::of(plan(steps));
    case.tells(|case| case.vote("rob", true)).run_step().tells(|case| case.vote("rob", true)).claim().dies();
    let again = resumed(&case, None);
    assert_eq!((again.run.position, again.state()), (2, RunState::WaitingApproval));
}

#[test]
fn a_gate_that_people_skipped_is_asked_in_the_new_run() {
    let mut case = rejected();
    case.tell(skip_by("ann")).tell(skip_by("bob")).claim().dies();
    let again = resumed(&case, None);
    assert_eq!(again.steps(), [StepState::WaitingApproval, StepState::Pending]);
}

/// Only a decision sets `policy_denied`, only a vote `approval_rejected`.
#[test]
fn what_a_worker_reports_is_never_a_denial() {
    for class in ErrorClass::ALL {
        let mut case = Case::of(plan(vec![task("t").attempts(1)]));
        case.claim().fails(*class);
        assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::StepFailed)), "{class}");
        let told = case.step(0).last_error.as_ref().unwrap().class;
        assert!(!matches!(told, ErrorClass::Denied | ErrorClass::Rejected), "{class}");
    }
}

#[test]
fn a_vote_by_an_approver_is_recorded_as_one() {
    let mut case = rejected();
    case.tell(skip_by("ann"));
    let by = Context::of(Initiator::Approval, "bob");
    let vote = case.vote("bob", true);
    case.ask_by(vote, CommandOrigin { now: case.now, by }).unwrap();
    assert_eq!(case.step(0).state(), StepState::Skipped);
}
