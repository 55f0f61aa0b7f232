//! Rollback: which steps, in which order, and what happens when undoing fails.

use std::collections::BTreeMap;

use super::case::{Case, Opening, START, cancel, json, pause, retry, roll_back, skip};
use super::plans::{Tuned, gate, plan, signal, task, tasks, under_profile};
use crate::decide::{Command, Outcome};
use crate::limits;
use crate::machine::step::Resolution;
use crate::plan::retry::{COMMAND_NOT_PERMITTED, ErrorClass, ROLLBACK_UNVERIFIED, SANDBOX_REFUSED, StepError};
use crate::plan::{OnDenial, OnFailure, Plan, RollbackCondition, StepSpec, Work};
use crate::rejection::Rejection;
use crate::run::Lineage;
use crate::run::change::SideWrite;
use crate::state::{Control, EffectClass, Reason, ReceiptState, RunState, StepState};
use crate::time::Millis;

fn undone(case: &Case) -> Vec<u32> {
    case.run
        .added
        .iter()
        .map(|spec| match spec.work {
            Work::Rollback { undoes, .. } => undoes,
            _ => panic!("{spec:?}"),
        })
        .collect()
}

#[test]
fn the_failed_step_comes_first_then_the_succeeded_ones_newest_first() {
    use StepState::{Failed, Pending, Ready, RolledBack, Succeeded};
    let mut case = Case::of(plan(vec![
        task("a").undoable(),
        task("b"),
        task("c").undoable(),
        task("d").undoable(),
        task("e").undoable(),
    ]));
    case.run_step().run_step().run_step().claim().dies();
    assert_eq!((case.state(), case.run.reason), (RunState::RollingBack, Some(Reason::StepFailed)));
    assert_eq!(undone(&case), [3, 2, 0]);
    assert!(case.names().contains(&"execution.rollback.started"));
    assert_eq!(case.change.side.iter().filter(|side| matches!(side, SideWrite::AddStep { .. })).count(), 3);
    assert_eq!(case.steps(), [Succeeded, Succeeded, Succeeded, Failed, Pending, Ready, Pending, Pending]);
    case.run_step();
    assert_eq!(case.steps(), [Succeeded, Succeeded, Succeeded, RolledBack, Pending, Succeeded, Ready, Pending]);
    case.run_step().run_step();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
    assert_eq!(case.names().last(), Some(&"session.failed"));
    let log: Vec<_> = case.run.notes.compensation_log.iter().map(|entry| (entry.step, entry.by_step)).collect();
    assert_eq!(log, [(3, 5), (2, 6), (0, 7)]);
    let error = case.change.end.as_deref().unwrap().error.clone();
    assert_eq!(error.unwrap().code, "E", "what went wrong is still known when it has been undone");
    let metrics = case.run.notes.metrics.as_deref().unwrap();
    assert_eq!((metrics.steps, metrics.succeeded, metrics.failed), (8, 6, 1), "that it was undone does not mend it");
}

#[test]
fn only_what_may_have_acted_is_undone() {
    let steps = |last: StepSpec| plan(vec![task("a").undoable(), last]);
    // A failed read had no effect; a step that never ran had none either.
    let mut read = Case::of(steps(task("b").undoable().effect(EffectClass::Read)));
    read.run_step().claim().dies();
    assert_eq!(undone(&read), [0]);
    let mut never_ran = Case::of(Plan { timeout: Some(Millis(50)), ..steps(task("b").undoable()) });
    never_ran.run_step().until_wake().tell(Command::Tick);
    assert_eq!(undone(&never_ran), [0]);
    let mut wrote = Case::of(steps(task("b").undoable().effect(EffectClass::Unsafe)));
    wrote.run_step().claim().dies();
    assert_eq!(undone(&wrote), [1, 0]);
}

/// Only where no attempt can have begun: an earlier one may have, whatever the last one says.
#[test]
fn a_command_that_was_never_started_is_not_undone() {
    let failing = |lineage: Option<Lineage>, first: Option<&str>, last: &str| {
        let work = Work::Command { argv: vec!["/bin/true".into()], env: BTreeMap::new() };
        let command = StepSpec::new("b", work).undoable().attempts(2);
        let plan = under_profile(vec![task("a").undoable(), command]);
        let mut case = Opening { lineage, ..Opening::of(plan) }.start();
        case.run_step();
        if let Some(code) = first {
            let error = StepError::new(ErrorClass::Unavailable, code, "no");
            case.claim().tells(|case| case.reports(Outcome::Retry { error, backoff: None }));
        }
        let error = StepError::new(ErrorClass::Terminal, last, "no");
        case.claim().tells(|case| case.reports(Outcome::Dead { error }));
        case
    };
    for code in [COMMAND_NOT_PERMITTED, SANDBOX_REFUSED, "CREDENTIAL_UNAVAILABLE"] {
        let case = failing(None, None, code);
        assert_eq!((undone(&case), case.state()), (vec![0], RunState::RollingBack), "{code}");
    }
    for (first, last) in [(None, "COMMAND_FAILED"), (Some("COMMAND_FAILED"), COMMAND_NOT_PERMITTED)] {
        assert_eq!(undone(&failing(None, first, last)), [1, 0], "{first:?} {last}");
    }
    // A run that goes on from another does not know what that one's attempts have done.
    let run = failing(None, None, COMMAND_NOT_PERMITTED).run.id;
    let lineage = Lineage { root_run_id: run, resumed_from: run, resume_count: 1 };
    assert_eq!(undone(&failing(Some(lineage), None, COMMAND_NOT_PERMITTED)), [1, 0]);
    // What the code of a task says is its own word, and not the worker's.
    let mut other = Case::of(plan(vec![task("a").undoable()]));
    let error = StepError::new(ErrorClass::Terminal, COMMAND_NOT_PERMITTED, "no");
    other.claim().tells(|case| case.reports(Outcome::Dead { error }));
    assert_eq!(undone(&other), [0]);
}

#[test]
fn conditions_say_when_a_rollback_applies() {
    for (conditions, on_failure, by_hand) in [
        (&[RollbackCondition::Failure][..], true, false),
        (&[RollbackCondition::Manual], false, true),
        (&[RollbackCondition::Failure, RollbackCondition::Manual], true, true),
        (&[], false, false),
    ] {
        let started = || {
            let mut case = Case::of(plan(vec![task("a").undoable_when(conditions), task("b")]));
            case.run_step();
            case
        };
        let mut failing = started();
        failing.claim().dies();
        assert_eq!(failing.state() == RunState::RollingBack, on_failure, "{conditions:?}");
        let mut manual = started();
        assert_eq!(manual.ask(roll_back()).is_ok(), by_hand, "{conditions:?}");
    }
}

/// The default is `rollback` if an executed step declares one.
#[test]
fn the_default_rule_is_to_undo_what_can_be_undone() {
    let mut declared = Case::of(plan(vec![task("a").undoable(), task("b")]));
    declared.run_step().claim().dies();
    assert_eq!(declared.state(), RunState::RollingBack);
    let mut not_reached = Case::of(plan(vec![task("a"), task("b").undoable()]));
    not_reached.claim().dies();
    assert_eq!(not_reached.state(), RunState::Failed);
    for rule in [OnFailure::Fail, OnFailure::Pause] {
        let mut other = Case::of(Plan { on_failure: Some(rule), ..plan(vec![task("a").undoable(), task("b")]) });
        other.run_step().claim().dies();
        assert_ne!(other.state(), RunState::RollingBack);
    }
}

#[test]
fn a_rollback_gets_what_the_step_got_and_gave() {
    let mut step = task("a").undoable().queue("eu").timeout(Millis(700)).attempts(2).effect(EffectClass::Unsafe);
    step.rollback.as_mut().unwrap().with = Some(json(r#"{"how":"gently"}"#));
    let mut case = Case::of(plan(vec![step, task("b")]));
    case.run_step().tell(roll_back());
    let expected = r#"{"input":{"order":7},"output":{"ok":true},"with":{"how":"gently"}}"#;
    assert_eq!(case.run.input(2).as_str(), expected);
    let spec = case.run.spec(2);
    assert_eq!((spec.key.as_str(), spec.queue.as_str()), ("rollback:a", "eu"));
    assert_eq!((spec.timeout, spec.effect_class()), (Some(Millis(700)), EffectClass::Unsafe));
    assert_eq!(spec.retry_policy().max_attempts, 2);
}

#[test]
fn a_rollback_by_hand_ends_what_is_under_way() {
    use StepState::{Canceled, Pending, Ready, Succeeded};
    let seconds = [task("b"), signal("b", None), gate("b", OnDenial::Fail)];
    for second in seconds {
        let mut case = Case::of(plan(vec![task("a").undoable(), second, task("c")]));
        case.run_step().tell(roll_back());
        assert_eq!(case.steps(), [Succeeded, Canceled, Pending, Ready]);
        assert!(case.change.journal[0].context.metadata.as_ref().unwrap().as_str().contains("wrong order"));
        assert!(matches!(case.refuse(roll_back()), Rejection::InvalidRunState { .. }));
        case.run_step();
        assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
    }
}

#[test]
fn a_rollback_by_hand_may_stop_at_a_step() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").undoable(), task("c").undoable(), task("d")]));
    case.run_step().run_step().run_step();
    let to = |from| Command::Rollback { reason: "only the end".into(), from: Some(from) };
    assert!(matches!(case.refuse(to(3)), Rejection::InvalidRunState { .. }), "there is nothing to undo");
    assert!(matches!(case.refuse(to(4)), Rejection::UnknownStep { .. }));
    case.tell(to(1));
    assert_eq!(undone(&case), [2, 1]);
    case.run_step().run_step();
    assert_eq!((case.state(), case.steps()[0]), (RunState::Failed, StepState::Succeeded));
}

#[test]
fn a_rollback_by_hand_needs_something_to_undo_and_nothing_running() {
    let mut nothing = Case::of(tasks(2));
    nothing.run_step();
    assert!(matches!(nothing.refuse(roll_back()), Rejection::InvalidRunState { .. }));
    let mut running = Case::of(plan(vec![task("a").undoable(), task("b")]));
    running.run_step().claim();
    assert!(matches!(running.refuse(roll_back()), Rejection::InvalidRunState { .. }));
}

#[test]
fn a_rollback_by_hand_is_a_directive() {
    let mut case = Case::of(plan(vec![task("a").undoable().when_failed(OnFailure::Pause)]));
    case.claim().dies().tell(roll_back());
    assert_eq!((case.state(), case.run.control), (RunState::RollingBack, Control::Active));
    case.run_step();
    assert_eq!(case.steps(), [StepState::RolledBack, StepState::Succeeded]);
}

/// An operator who paused while a step ran has not asked for its rollback to run.
#[test]
fn an_automatic_rollback_of_a_paused_run_waits_for_resume() {
    let mut case = Case::of(plan(vec![task("a").undoable()]));
    case.claim().tell(pause()).dies();
    assert_eq!((case.state(), case.run.control), (RunState::RollingBack, Control::Paused));
    assert_eq!(case.row().eligible_at, None);
    assert!(matches!(case.refuse(Command::Claim { session: super::case::session(1) }), Rejection::NotClaimable { .. }));
    case.tell(Command::Resume).run_step();
    assert_eq!(case.state(), RunState::Failed);
}

#[test]
fn a_rollback_can_be_paused_and_its_end_is_the_end() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b")]));
    case.run_step().claim().dies().tell(pause());
    assert_eq!((case.state(), case.row().eligible_at), (RunState::RollingBack, None));
    case.tell(Command::Resume).claim().tell(pause()).complete();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
}

fn stuck() -> Case {
    let mut case = Case::of(plan(vec![task("a").undoable().attempts(1), task("b").undoable().attempts(1), task("c")]));
    case.run_step().run_step().claim().dies().claim().dies();
    case
}

#[test]
fn a_failed_rollback_is_loud() {
    use StepState::{Failed, Pending, Succeeded};
    let mut case = stuck();
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::RollbackFailed)));
    assert_eq!(case.steps(), [Succeeded, Succeeded, Failed, Failed, Pending]);
    assert_eq!(case.run.notes.compensation_log[0].outcome, StepState::Failed);
    assert!(matches!(case.refuse(Command::Resume), Rejection::DirectiveDue { .. }));
}

#[test]
fn a_failed_rollback_is_tried_again() {
    use StepState::{Failed, RolledBack, Succeeded};
    let mut case = stuck();
    case.tell(retry());
    assert_eq!((case.state(), case.step(3).iteration), (RunState::RollingBack, 1));
    assert_eq!(case.run.reason, None, "what went wrong is being put right");
    case.run_step().run_step();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
    assert_eq!(case.steps(), [RolledBack, RolledBack, Failed, Succeeded, Succeeded]);
}

#[test]
fn a_failed_rollback_is_skipped() {
    use StepState::{Failed, RolledBack, Skipped, Succeeded};
    let mut case = stuck();
    case.tell(skip());
    assert_eq!(case.state(), RunState::RollingBack);
    case.run_step();
    assert_eq!(case.steps(), [RolledBack, Succeeded, Failed, Skipped, Succeeded]);
    assert_eq!(case.state(), RunState::Failed);
    let mut last = Case::of(plan(vec![task("a").undoable().attempts(1), task("b")]));
    last.run_step().claim().dies().claim().dies().tell(skip());
    assert_eq!((last.state(), last.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
}

#[test]
fn a_failed_rollback_is_canceled() {
    let mut case = stuck();
    case.tell(cancel(false));
    assert_eq!(case.state(), RunState::Canceled);
    assert_eq!(case.step(4).state(), StepState::Canceled);
}

#[test]
fn a_rollback_has_a_budget_of_its_own() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").attempts(1)]));
    case.run_step().claim().dies();
    case.claim().fails(ErrorClass::Unavailable);
    assert_eq!((case.state(), case.step(2).state()), (RunState::RollingBack, StepState::Ready));
    case.claim().fails(ErrorClass::Unavailable);
    assert_eq!(case.state(), RunState::Paused, "two tries for an idempotent one");
}

#[test]
fn a_rollback_in_doubt_pauses_and_its_resolution_goes_on() {
    for resolution in Resolution::ALL {
        let mut case = Case::of(plan(vec![task("a").undoable().effect(EffectClass::Unsafe), task("b")]));
        case.run_step().claim().dies().claim();
        case.tells(|case| case.intent(EffectClass::Unsafe)).tells(Case::lease_expired);
        assert_eq!((case.state(), case.step(2).state()), (RunState::Paused, StepState::InDoubt));
        case.after(limits::EFFECT_SETTLES_AFTER);
        let (position, resolution) = (2, *resolution);
        case.tell(Command::Resolve { position, resolution, output: None, reason: "looked".into() });
        let expected = match resolution {
            Resolution::Happened => RunState::Failed,
            Resolution::DidNotHappen => RunState::RollingBack,
            Resolution::Failed => RunState::Paused,
        };
        assert_eq!(case.state(), expected, "{resolution}");
    }
}

#[test]
fn a_rollback_may_wait() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b")]));
    case.run_step().claim().dies().claim().tells(|case| super::wait::waiting(case, Some(Millis(9))));
    assert_eq!((case.state(), case.row().wake_at), (RunState::RollingBack, Some(case.now + Millis(9))));
    case.until_wake().tell(Command::Tick).claim();
    case.tell(case.reports(Outcome::Completed { output: json("1") }));
    assert_eq!(case.state(), RunState::Failed);
}

#[test]
fn a_rollback_is_not_ended_by_the_deadline_that_caused_it() {
    let mut case =
        Case::of(Plan { timeout: Some(Millis::from_mins(1)), ..plan(vec![task("a").undoable(), task("b")]) });
    case.run_step().until_wake().tell(Command::Tick);
    assert_eq!((case.now, case.state()), (START + Millis::from_mins(1), RunState::RollingBack));
    case.run_step();
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
}

/// Went back over steps that had succeeded, then stopped: what they did is still there.
#[test]
fn what_a_restart_went_back_over_is_undone_and_the_handler_is_told_what_was_done() {
    let paused = || {
        let mut case = Case::of(Plan {
            on_failure: Some(OnFailure::Pause),
            ..plan(vec![task("a").undoable(), task("b").undoable(), task("c")])
        });
        case.run_step().run_step().claim().dies().tell(Command::RestartFrom { position: 0 });
        case
    };
    let mut canceled = paused();
    canceled.tell(cancel(true));
    let mut by_hand = paused();
    by_hand.claim().dies().tell(roll_back());
    for case in [&mut canceled, &mut by_hand] {
        assert_eq!(case.state(), RunState::RollingBack);
        for undone in ["rollback:b", "rollback:a"] {
            assert_eq!(case.run.spec(case.run.position).key, undone);
            let told = case.run.input(case.run.position).to_value().unwrap();
            assert_eq!(told["output"], serde_json::json!({"ok": true}), "{undone}");
            case.run_step();
        }
        assert!(case.state().is_terminal());
        assert_eq!(case.run.notes.compensation_log.len(), 2);
    }
}

#[test]
fn a_preview_says_what_a_rollback_would_undo_and_then_it_does() {
    let mut case = Case::of(plan(vec![
        task("a").undoable(),
        task("b"),
        task("c").undoable_when(&[RollbackCondition::Failure]),
        task("r").effect(EffectClass::Read),
        task("d").undoable(),
        task("e").undoable(),
    ]));
    case.run_step().run_step().run_step().run_step().run_step().tell(pause());
    let preview = case.run.rollback_preview(0);
    let order: Vec<u32> = preview.undone.iter().map(|undone| undone.position).collect();
    assert_eq!((order.as_slice(), preview.undone[0].by.as_str()), ([4, 0].as_slice(), "undo"));
    let left: Vec<_> = preview.left.iter().map(|left| (left.step.as_str(), left.why.contains("conditions"))).collect();
    assert_eq!(left, [("c", true), ("b", false)], "what reads, and what has not run, is not listed");
    assert_eq!(case.run.rollback_preview(1).undone.len(), 1, "from a step on");
    case.tell(roll_back());
    assert_eq!(undone(&case), order, "the preview tells the truth");
}

#[test]
fn the_log_of_what_was_undone_has_the_receipts() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").undoable(), task("c").attempts(1)]));
    case.run_step().run_step().claim().dies();
    case.claim().tells(|case| case.intent(EffectClass::Unsafe));
    let receipt = case.step(3).open_intent.unwrap();
    case.tells(|case| case.outcome(ReceiptState::Succeeded)).complete().run_step();
    let log = &case.run.notes.compensation_log;
    assert_eq!((log[0].step, log[0].receipts.as_slice()), (1, [receipt].as_slice()));
    assert!(log[1].receipts.is_empty(), "its own alone");
    assert!(case.run.notes.undone_by.is_empty());
}

#[test]
fn a_rollback_that_does_not_show_has_a_reason_of_its_own() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").attempts(1)]));
    case.run_step().claim().dies().claim();
    let error = StepError::new(ErrorClass::Terminal, ROLLBACK_UNVERIFIED, "it is still there");
    case.tell(case.reports(Outcome::Dead { error }));
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::RollbackUnverified)));
    let log = &case.run.notes.compensation_log;
    assert_eq!((log[0].outcome, log[0].verified), (StepState::Failed, Some(false)));
    assert!(case.run.notes.pause.as_ref().unwrap().reason.contains("does not show"));
}

#[test]
fn a_rollback_counts_once_what_verifies_it_has_succeeded() {
    use StepState::{Failed, Pending, Ready, RolledBack, Succeeded};
    let mut case = Case::of(plan(vec![task("a").undoable().verified(), task("b").undoable(), task("c").attempts(1)]));
    case.run_step().run_step().claim().dies();
    let keys: Vec<_> = case.run.added.iter().map(|spec| (spec.key.as_str(), spec.effect_class())).collect();
    let (idempotent, read) = (EffectClass::Idempotent, EffectClass::Read);
    assert_eq!(keys, [("rollback:b", idempotent), ("rollback:a", idempotent), ("verify:a", read)]);
    case.run_step().run_step();
    assert_eq!(case.steps(), [Succeeded, RolledBack, Failed, Succeeded, Succeeded, Ready], "it was not looked at yet");
    assert_eq!(case.state(), RunState::RollingBack);
    case.run_step();
    assert_eq!(case.steps(), [RolledBack, RolledBack, Failed, Succeeded, Succeeded, Succeeded]);
    assert_eq!((case.state(), case.run.reason), (RunState::Failed, Some(Reason::RolledBack)));
    let log: Vec<_> = case.run.notes.compensation_log.iter().map(|entry| (entry.by_step, entry.verified)).collect();
    assert_eq!(log, [(3, Some(false)), (4, Some(true))], "nothing has looked at the first");
    assert!(!case.steps().contains(&Pending));
}

#[test]
fn a_rollback_whose_verification_fails_pauses_with_its_own_reason() {
    let mut case = Case::of(plan(vec![task("a").undoable().verified(), task("b").attempts(1)]));
    case.run_step().claim().dies();
    case.run_step().claim().dies();
    assert_eq!((case.state(), case.run.reason), (RunState::Paused, Some(Reason::RollbackUnverified)));
    assert_eq!(case.step(0).state(), StepState::Succeeded, "it does not count as undone");
    let log = &case.run.notes.compensation_log;
    assert_eq!((log.len(), log[0].by_step, log[0].outcome, log[0].verified), (1, 2, StepState::Failed, Some(false)));
    assert!(case.run.notes.pause.as_ref().unwrap().reason.contains("what verifies it has failed"));
    // An operator has looked, and has it verified once more.
    case.tell(retry());
    case.run_step();
    assert_eq!((case.state(), case.step(0).state()), (RunState::Failed, StepState::RolledBack));
}

#[test]
fn a_rollback_task_may_say_that_it_has_read_its_target_back() {
    let mut case = Case::of(plan(vec![task("a").undoable(), task("b").attempts(1)]));
    case.run_step().claim().dies().claim();
    case.tell(case.reports(Outcome::Completed { output: json(r#"{"verified":true}"#) }));
    assert_eq!(case.run.notes.compensation_log[0].verified, Some(true));
}

/// What was undone must not pass for done in a run that is made from this one.
#[test]
fn a_rollback_that_a_cancel_leaves_unverified_counts_all_the_same() {
    let rolled_back = || {
        let mut case = Case::of(plan(vec![task("a").undoable().verified(), task("b").attempts(1)]));
        case.run_step().claim().dies();
        case
    };
    let canceled = |case: &Case| {
        assert_eq!((case.state(), case.step(0).state()), (RunState::Canceled, StepState::RolledBack));
        let log = &case.run.notes.compensation_log;
        assert_eq!((log.len(), log[0].by_step), (1, 2));
        assert_eq!((log[0].outcome, log[0].verified), (StepState::RolledBack, Some(false)));
    };
    let mut before_it_began = rolled_back();
    before_it_began.run_step().tell(pause());
    before_it_began.tell(cancel(false));
    canceled(&before_it_began);
    let mut while_it_undoes = rolled_back();
    while_it_undoes.claim().tell(pause());
    while_it_undoes.tell(cancel(false));
    while_it_undoes.complete();
    canceled(&while_it_undoes);
}
