//! Nothing leaves a terminal state.

use super::case::{Case, cancel};
use super::moves::{Move, everything};
use super::plans::{Tuned, plan, task, tasks};
use crate::plan::OnFailure;
use crate::rejection::Rejection;
use crate::state::RunState;
use crate::time::Millis;

#[test]
fn every_command_on_a_terminal_run_is_refused() {
    let mut succeeded = Case::of(tasks(1));
    succeeded.run_step();
    let mut failed = Case::of(tasks(1));
    failed.claim().dies();
    let mut canceled = Case::of(tasks(1));
    canceled.tell(cancel(false));
    let mut rolled_back = Case::of(plan(vec![task("a").undoable().when_failed(OnFailure::Rollback)]));
    rolled_back.claim().dies().run_step();
    let cases = [
        (succeeded, RunState::Succeeded),
        (failed, RunState::Failed),
        (canceled, RunState::Canceled),
        (rolled_back, RunState::Failed),
    ];
    for (mut case, state) in cases {
        assert_eq!(case.state(), state);
        case.after(Millis::from_hours(48));
        for command in everything(&case, Move::default()) {
            let no = case.refuse(command);
            assert!(matches!(no, Rejection::Terminal { state: is, .. } if is == state), "{no}");
        }
    }
}
