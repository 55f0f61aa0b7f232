//! The projection: a run's state is this function of its control, steps and rollback, and nothing else sets it.

use crate::planted::{Bug, is_planted};
use crate::run::{Phase, Run, Step};
use crate::state::{ApprovalState, Control, RunState, StepState};

/// What the projection looks at.
pub struct View<'a> {
    pub control: Control,
    /// All steps: `forward` of the plan, then the appended rollback steps.
    pub steps: &'a dyn Fn(usize) -> &'a Step,
    pub forward: usize,
    pub len: usize,
    pub position: usize,
    /// The run was made to undo another one.
    pub undo: bool,
}

/// First match wins.
pub fn project(view: &View<'_>) -> RunState {
    let step = view.steps;
    let rollback = || (view.forward..view.len).map(step);
    let rollback_stuck = rollback().any(|step| matches!(step.phase, Phase::Failed | Phase::InDoubt { .. }));
    if !rollback_stuck && rollback().any(|step| !step.state().is_finished()) {
        return RunState::RollingBack;
    }
    if view.control == Control::Canceled {
        return RunState::Canceled;
    }
    // Only the step the run stands at can be unfinished with finished ones behind it, so a run that has not
    // reached its last step need not look at all of them.
    let current = step(view.position);
    let past_the_end = current.state().is_finished();
    if past_the_end && view.len == view.forward {
        let good = |state| {
            matches!(state, StepState::Succeeded | StepState::Skipped)
                || (state == StepState::Failed && is_planted(Bug::FailedIsGood))
        };
        if (0..view.forward).all(|index| good(step(index).state())) {
            return RunState::Succeeded;
        }
    }
    // What was made to undo something has succeeded once that is undone.
    let good = |step: &Step| matches!(step.state(), StepState::Succeeded | StepState::Skipped);
    if view.undo && view.len > view.forward && rollback().all(good) {
        return RunState::Succeeded;
    }
    let doubt =
        matches!(current.phase, Phase::InDoubt { .. }) || rollback().any(|s| matches!(s.phase, Phase::InDoubt { .. }));
    if view.control == Control::Paused || doubt {
        return RunState::Paused;
    }
    if matches!(current.state(), StepState::Failed | StepState::RolledBack | StepState::Canceled)
        || view.len > view.forward
    {
        return RunState::Failed;
    }
    match &current.phase {
        Phase::WaitingApproval(approval) if approval.state == ApprovalState::Requested => RunState::WaitingApproval,
        Phase::WaitingApproval(_) => RunState::Paused,
        Phase::WaitingSignal(_) => RunState::WaitingSignal,
        Phase::Pending | Phase::Ready { .. } if never_started(view) => RunState::Pending,
        _ => RunState::Running,
    }
}

/// What a run's steps say its state is, while it lives.
pub fn projected(run: &Run) -> RunState {
    project(&View {
        control: run.control,
        steps: &|index| &run.steps[index],
        forward: run.forward_len(),
        len: run.steps.len(),
        position: run.position as usize,
        undo: run.header.is_undo(),
    })
}

fn never_started(view: &View<'_>) -> bool {
    // Behind the current step too: a restart may have gone back over steps that ran.
    (0..view.forward).all(|index| {
        let step = (view.steps)(index);
        step.attempt == 0 && matches!(step.phase, Phase::Pending | Phase::Ready { .. } | Phase::Skipped { .. })
    })
}
