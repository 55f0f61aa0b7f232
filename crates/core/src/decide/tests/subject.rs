//! Runs that wait for their subject.

use super::case::{Case, Opening, cancel, error, pause, retry, roll_back, skip};
use super::plans::{plan, task, tasks};
use crate::decide::{Command, Queued};
use crate::plan::retry::ErrorClass;
use crate::plan::{OnFailure, Plan};
use crate::rejection::Rejection;
use crate::run::change::SideWrite;
use crate::state::{Control, Detail, Reason, RunState, StepState};
use crate::time::Millis;

fn queued(plan: Plan) -> Case {
    Opening { queued: Some(Queued { cancels: false }), ..Opening::of(plan) }.start()
}

#[test]
fn a_queued_run_is_pending_and_cannot_be_claimed() {
    let mut case = queued(tasks(2));
    assert_eq!((case.state(), case.run.detail), (RunState::Pending, Some(Detail::SubjectBusy)));
    assert_eq!((case.row().eligible_at, case.steps()), (None, vec![StepState::Pending; 2]));
    assert!(matches!(case.change.side.as_slice(), [SideWrite::QueueSubject { cancels: false, .. }]));
    for command in [Command::Claim { session: super::case::session(1) }, retry(), skip(), roll_back(), Command::Tick] {
        case.refuse(command);
    }
}

#[test]
fn it_starts_when_its_turn_has_come() {
    let mut case = queued(tasks(1));
    case.tell(Command::Admit);
    assert!(matches!(case.change.side.as_slice(), [SideWrite::LeaveQueue { .. }, SideWrite::TakeSubject { .. }]));
    assert_eq!((case.state(), case.run.detail, case.step(0).state()), (RunState::Pending, None, StepState::Ready));
    assert!(matches!(case.refuse(Command::Admit), Rejection::InvalidRunState { .. }));
    case.run_step();
    assert_eq!(case.state(), RunState::Succeeded);
    assert!(matches!(case.change.side.as_slice(), [SideWrite::FreeSubject { .. }]));
    assert!(matches!(Case::of(tasks(1)).refuse(Command::Admit), Rejection::InvalidRunState { .. }));
}

/// Its turn comes all the same, and nothing of it is claimed before an operator resumes.
#[test]
fn a_paused_one_keeps_its_place() {
    let mut case = queued(tasks(1));
    case.tell(pause()).tell(Command::Admit);
    assert_eq!((case.state(), case.run.control, case.row().eligible_at), (RunState::Paused, Control::Paused, None));
    case.tell(Command::Resume).run_step();
    assert_eq!(case.state(), RunState::Succeeded);
    let mut early = queued(tasks(1));
    early.tell(pause()).tell(Command::Resume);
    assert_eq!((early.state(), early.run.detail), (RunState::Pending, Some(Detail::SubjectBusy)));
}

#[test]
fn one_that_ends_before_its_turn_leaves_the_queue() {
    let mut canceled = queued(tasks(2));
    canceled.tell(cancel(true));
    let mut late = queued(Plan { timeout: Some(Millis(100)), ..plan(vec![task("t")]) });
    late.until_wake().tell(Command::Tick);
    assert_eq!((late.state(), late.run.reason), (RunState::Failed, Some(Reason::Deadline)));
    // There is no directive that could give it the subject.
    let mut failed = queued(Plan { on_failure: Some(OnFailure::Pause), ..tasks(1) });
    failed.tell(pause()).tell(Command::FailRun { reason: Reason::Backout, error: error(ErrorClass::Terminal) });
    assert_eq!((failed.state(), failed.run.reason), (RunState::Failed, Some(Reason::Backout)));
    for case in [&canceled, &late, &failed] {
        assert!(case.state().is_terminal());
        assert!(matches!(case.change.side.as_slice(), [SideWrite::LeaveQueue { .. }]), "{:?}", case.change.side);
    }
}
