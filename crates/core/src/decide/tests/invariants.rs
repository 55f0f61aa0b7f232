//! What must hold after every accepted command, whatever the plan and the history.

use std::collections::BTreeMap;

use super::case::{Case, session};
use crate::decide::Command;
use crate::machine;
use crate::run::change::{ClaimChange, LiveChange, LiveParts, SideWrite};
use crate::run::event::Event;
use crate::run::{Phase, Run, Step};
use crate::state::{ApprovalState, Control, RunState, StepState};

pub fn check(case: &mut Case, before: &Run) {
    journal_is_dense(case, before);
    attempts_rise(case, before);
    steps_follow_arrows(case, before);
    state_is_projected(case, before);
    claims_are_counted(case, before);
    live_row_follows(case, before);
    clocks_can_be_served(case);
    somebody_can_go_on(case);
}

fn journal_is_dense(case: &Case, before: &Run) {
    let (run, change) = (&case.run, &case.change);
    assert!(!change.journal.is_empty());
    assert_eq!(change.expected, (before.version > 0).then_some(before.version));
    let mut seq = before.version;
    for row in &change.journal {
        assert_eq!(row.first_seq, seq + 1, "{row:?}");
        let events: Vec<Event> = row.events.decode().unwrap();
        assert!(!events.is_empty(), "{row:?}");
        assert_eq!(row.seq, seq + events.len() as u64, "{row:?}");
        assert!(events.iter().all(|event| Event::NAMES.contains(&event.name())));
        seq = row.seq;
    }
    assert_eq!(run.version, seq);
}

fn attempts_rise(case: &mut Case, before: &Run) {
    for event in case.events() {
        if let Event::StepStarted { step, attempt, .. } = event {
            assert!(case.attempts.insert((step, attempt)), "attempt {attempt} of {step} came twice");
        }
    }
    for (position, step) in case.run.steps.iter().enumerate() {
        let claims = case
            .walked
            .iter()
            .filter(|arrow| arrow.position as usize == position && arrow.to == StepState::Running)
            .count();
        let earlier = before.steps.get(position).map_or(0, |step| step.attempt);
        assert_eq!(step.attempt, earlier + claims as u32, "step {position}");
        let latest = case.attempts.range((position as u32, 0)..=(position as u32, u32::MAX));
        assert_eq!(step.attempt, latest.last().map_or(0, |(_, attempt)| *attempt));
    }
}

/// Every change of a step's state is a chain of arrows of the machine, from where it was to where it is.
fn steps_follow_arrows(case: &Case, before: &Run) {
    for (position, step) in case.run.steps.iter().enumerate() {
        let spec = case.run.spec(position as u32);
        let mut at = before.steps.get(position).map_or(StepState::Pending, Step::state);
        for arrow in case.walked.iter().filter(|arrow| arrow.position as usize == position) {
            assert_eq!((arrow.from, arrow.kind), (at, spec.kind()));
            assert_eq!(machine::step::next(at, arrow.kind, arrow.event), Some(arrow.to));
            at = arrow.to;
        }
        let inherited = before.version == 0 && at == StepState::Pending;
        if !inherited {
            assert_eq!(at, step.state(), "step {position} moved without an arrow");
        }
    }
}

fn is_good(step: &Step) -> bool {
    matches!(step.state(), StepState::Succeeded | StepState::Skipped)
}

/// The projection's rules word by word, over all steps. Two things they leave to common sense: a rollback that is stuck is not
/// outstanding, it pauses; and a run that was rolled back has not succeeded, whatever its steps did.
fn naive_projection(run: &Run) -> RunState {
    let (forward, rollback) = run.steps.split_at(run.forward_len());
    let states = || run.steps.iter().map(Step::state);
    let stuck = rollback.iter().any(|step| matches!(step.state(), StepState::Failed | StepState::InDoubt));
    if !stuck && rollback.iter().any(|step| !step.state().is_finished()) {
        RunState::RollingBack
    } else if run.control == Control::Canceled {
        RunState::Canceled
    } else if rollback.is_empty() && forward.iter().all(is_good) || has_undone(run) {
        RunState::Succeeded
    } else if run.control == Control::Paused || states().any(|state| state == StepState::InDoubt) {
        RunState::Paused
    } else if states().any(|state| matches!(state, StepState::Failed | StepState::RolledBack)) || !rollback.is_empty() {
        RunState::Failed
    } else if states().any(|state| state == StepState::WaitingApproval) {
        RunState::WaitingApproval
    } else if states().any(|state| state == StepState::WaitingSignal) {
        RunState::WaitingSignal
    } else if run.steps.iter().all(|step| {
        step.attempt == 0 && matches!(step.state(), StepState::Pending | StepState::Ready | StepState::Skipped)
    }) {
        RunState::Pending
    } else {
        RunState::Running
    }
}

/// Whether the run was made to undo another one, and has.
fn has_undone(run: &Run) -> bool {
    let rollback = &run.steps[run.forward_len()..];
    run.header.is_undo() && run.control != Control::Canceled && !rollback.is_empty() && rollback.iter().all(is_good)
}

fn state_is_projected(case: &Case, before: &Run) {
    let run = &case.run;
    assert_eq!(run.state, naive_projection(run), "{run:?}");
    if before.version > 0 && before.state != run.state {
        let (from, to) = (before.state, run.state);
        assert!(machine::run::allowed(from, to), "{from} -> {to}");
    }
    let forward = &run.steps[..run.forward_len()];
    let all_good = forward.iter().all(is_good);
    let undone = !run.added.is_empty() || run.control == Control::Canceled;
    assert_eq!(run.state == RunState::Succeeded, all_good && !undone || has_undone(run));
    if matches!(run.state, RunState::Failed | RunState::Canceled) {
        assert!(run.reason.is_some(), "a run that ended badly says why");
    }
    if run.control == Control::Active {
        assert_eq!(run.notes.pause, None, "an active run has no pause");
    }
}

fn running(run: &Run) -> i32 {
    run.steps.iter().filter(|step| step.state() == StepState::Running).count() as i32
}

fn claims_are_counted(case: &Case, before: &Run) {
    let live = running(&case.run);
    assert!(live <= 1, "two live claims");
    let expected = match live - running(before) {
        0 => ClaimChange::None,
        1 => ClaimChange::Take { first: before.steps.iter().all(|step| step.attempt == 0) },
        _ => ClaimChange::Release,
    };
    assert_eq!(case.change.claim, expected);
}

fn live_row_follows(case: &Case, before: &Run) {
    let (run, change) = (&case.run, &case.change);
    let terminal = run.state.is_terminal();
    assert_eq!(matches!(change.live, LiveChange::Gone), terminal);
    assert_eq!(change.end.is_some(), terminal);
    assert_eq!(run.finished_at.is_some(), terminal);
    assert_eq!(change.start.is_some(), before.version == 0);
    let wrote = |wanted: fn(&SideWrite) -> bool| change.side.iter().any(wanted);
    let freed = wrote(|side| matches!(side, SideWrite::FreeSubject { .. }));
    let (took, left) = (
        wrote(|side| matches!(side, SideWrite::TakeSubject { .. })),
        wrote(|side| matches!(side, SideWrite::LeaveQueue { .. })),
    );
    assert_eq!(freed, terminal && (took || !before.is_queued()), "the subject is freed at the end");
    assert_eq!(left, before.is_queued() && !run.is_queued(), "the queue is left once");
    match &change.live {
        LiveChange::Gone => {
            let end = change.end.as_deref().unwrap();
            assert_eq!((end.state, end.reason, end.position), (run.state, run.reason, run.position));
        }
        LiveChange::Advance(row) => {
            assert!(before.version > 0);
            assert_eq!(LiveParts::of(before).indexed(), LiveParts::of(run).indexed());
            assert_eq!(before.control, run.control, "the store does not write it here");
            assert_eq!(**row, case.row());
        }
        LiveChange::Put(row) => assert_eq!(**row, case.row()),
    }
    let written: BTreeMap<_, _> = change.delta.steps.iter().map(|(at, step)| (*at, step)).collect();
    assert_eq!(written.len(), change.delta.steps.len(), "a step is written once");
    waits_and_approvals_are_closed(case);
}

/// A row that signals or people look for is open as long as the step waits for them, and no longer.
fn waits_and_approvals_are_closed(case: &Case) {
    let current = case.run.current();
    let waits = matches!(&current.phase, Phase::WaitingSignal(wait) if wait.signal.is_some());
    let asks = matches!(&current.phase, Phase::WaitingApproval(approval)
        if approval.state == ApprovalState::Requested);
    let terminal = case.run.state.is_terminal();
    assert_eq!(case.rows.open_waits(), usize::from(waits && !terminal), "{:?}", case.change.side);
    assert_eq!(case.rows.open_approvals(), usize::from(asks && !terminal));
}

/// A timer or a claimer that finds a row by its index can do something about it. Otherwise it would find the row
/// again at once, for ever.
fn clocks_can_be_served(case: &Case) {
    if case.run.state.is_terminal() {
        return;
    }
    let row = case.row();
    if let Some(at) = row.wake_at {
        case.would_accept(Command::Tick, at);
    }
    if let Some(at) = row.eligible_at {
        let command = if case.run.seeks_worker() {
            Command::OfferRun { session: session(9), worker: "w9".into() }
        } else {
            let taker = case.run.assigned_session().unwrap_or(session(9));
            case.claim_at(taker, case.now.max(at))
        };
        case.would_accept(command, at);
    }
    if let Some(at) = row.step_timeout_at {
        case.would_accept(case.step_timeout(), at);
    }
}

/// A run that is not terminal can go on: by a claim, a worker, a timer, a signal or a person.
fn somebody_can_go_on(case: &Case) {
    let (run, row) = (&case.run, case.row());
    let claimable = row.eligible_at.is_some() || row.session.is_some();
    let in_hands = match run.state {
        RunState::Succeeded | RunState::Failed | RunState::Canceled => true,
        RunState::Pending if run.is_queued() => case.is_accepted(Command::Admit),
        RunState::Pending | RunState::Running => claimable || run.is_offered() && row.wake_at.is_some(),
        RunState::WaitingApproval => case.rows.open_approvals() == 1 && row.wake_at.is_some(),
        RunState::WaitingSignal => case.rows.open_waits() == 1 || row.wake_at.is_some(),
        RunState::RollingBack if run.control == Control::Active => {
            let asked = case.rows.open_approvals() == 1 && row.wake_at.is_some();
            claimable || asked || run.current().state() == StepState::WaitingSignal
        }
        RunState::RollingBack | RunState::Paused => {
            row.session.is_some() || case.directives().into_iter().any(|command| case.is_accepted(command))
        }
    };
    assert!(in_hands, "nothing can go on with {run:?}");
}
