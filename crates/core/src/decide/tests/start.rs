//! Making a run: what is bound, skipped, inherited, and refused.

use super::case::{Answer, Answers, Case, Opening, bound, error, json};
use super::plans::{conditional, gate, plan, signal, task, tasks};
use crate::decide::{CommandOrigin, Rendered, open, start};
use crate::governance::judge::AllowDeclared;
use crate::json::Hash;
use crate::limits;
use crate::plan::retry::ErrorClass;
use crate::plan::{Accept, OnDenial, OnFailure, Plan, StepSpec, WaitFor, Work};
use crate::rejection::Rejection;
use crate::run::change::{IdempotencyRow, SideWrite};
use crate::run::{Header, Phase, Step};
use crate::state::{Reason, RunState, StepState};

fn with(template: &str) -> Work {
    Work::Task { handler: "work".into(), with: Some(json(template)) }
}

fn skipping(steps: usize, skipped: &[u32]) -> Case {
    let mut opening = Opening::of(conditional(steps));
    opening.answers = skipped.iter().map(|at| (*at, Answer::ConditionFalse)).collect();
    opening.start()
}

#[test]
fn the_first_step_decides_where_a_run_begins() {
    let cases = [
        (task("s"), RunState::Pending, StepState::Ready),
        (super::plans::transform("s"), RunState::Pending, StepState::Ready),
        (signal("s", None), RunState::WaitingSignal, StepState::WaitingSignal),
        (gate("s", OnDenial::Fail), RunState::WaitingApproval, StepState::WaitingApproval),
    ];
    for (step, state, step_state) in cases {
        let case = Case::of(plan(vec![step, task("t")]));
        assert_eq!((case.state(), case.steps()), (state, vec![step_state, StepState::Pending]));
        assert_eq!(case.names()[0], "session.created");
        assert_eq!(case.change.expected, None);
        let start = case.change.start.as_deref().unwrap();
        assert_eq!(Hash::of(start.plan.as_str().as_bytes()), start.plan_hash);
    }
}

/// Conditions that are false at the start, in the middle, at the end, and everywhere.
#[test]
fn a_false_condition_skips_wherever_it_stands() {
    use StepState::{Pending, Ready, Skipped, Succeeded};
    let first = skipping(3, &[0]);
    assert_eq!((first.steps(), first.state()), (vec![Skipped, Ready, Pending], RunState::Pending));
    assert_eq!(first.run.position, 1);
    let mut middle = skipping(4, &[1, 2]);
    middle.run_step();
    assert_eq!(middle.steps(), [Succeeded, Skipped, Skipped, Ready]);
    assert_eq!(middle.change.journal.len(), 3, "one record a row");
    let mut last = skipping(2, &[1]);
    last.run_step();
    assert_eq!((last.steps(), last.state()), (vec![Succeeded, Skipped], RunState::Succeeded));
    assert_eq!(last.names(), ["execution.step.completed", "execution.step.skipped", "session.completed"]);
}

#[test]
fn a_run_of_which_everything_is_skipped_has_succeeded() {
    let case = skipping(3, &[0, 1, 2]);
    assert_eq!((case.state(), case.steps()), (RunState::Succeeded, vec![StepState::Skipped; 3]));
    assert_eq!(case.change.end.as_deref().unwrap().output, None);
    assert!(matches!(&case.step(0).phase, Phase::Skipped { why } if why == "condition is false"));
}

#[test]
fn an_expression_that_fails_fails_its_step() {
    for (rule, state) in [(OnFailure::Fail, RunState::Failed), (OnFailure::Pause, RunState::Paused)] {
        let mut opening = Opening::of(Plan { on_failure: Some(rule), ..conditional(2) });
        opening.answers = Answers::from([(0, Answer::Broken)]);
        let case = opening.start();
        assert_eq!((case.state(), case.steps()), (state, vec![StepState::Failed, StepState::Pending]));
        assert_eq!(case.run.reason, Some(Reason::StepFailed));

        let mut opening = Opening::of(Plan { on_failure: Some(rule), ..conditional(2) });
        opening.answers = Answers::from([(1, Answer::Broken)]);
        let mut case = opening.start();
        case.run_step();
        assert_eq!((case.state(), case.steps()), (state, vec![StepState::Succeeded, StepState::Failed]));
        assert_eq!(case.step(1).last_error, Some(error(ErrorClass::Invalid)));
    }
}

#[test]
fn a_bound_input_is_what_the_step_gets() {
    let mut opening = Opening::of(plan(vec![task("t0"), StepSpec::new("t1", with(r#"{"rendered":"${{ 1 }}"}"#))]));
    opening.answers = Answers::from([(1, Answer::input(r#"{"rendered":1}"#))]);
    let mut case = opening.start();
    assert_eq!(case.run.input(0), json(r#"{"order":7}"#), "the run's inputs by default");
    case.run_step();
    assert_eq!(case.run.input(1), json(r#"{"rendered":1}"#));
    case.run_step();
    assert_eq!(case.change.journal[0].done.as_ref().unwrap().input, Some(json(r#"{"rendered":1}"#)));
}

#[test]
fn the_key_of_a_wait_is_the_rendered_one() {
    let until =
        WaitFor::Signal { signal: "go".into(), key: Some("${{ inputs.key }}".into()), accept: Accept::SinceRun };
    let mut opening = Opening::of(plan(vec![StepSpec::new("w", Work::Wait { until, timeout: None })]));
    let wait_key = Some("order-7".to_owned());
    opening.answers = Answers::from([(0, Answer::Renders(Rendered { wait_key, ..Rendered::default() }))]);
    let case = opening.start();
    let Phase::WaitingSignal(wait) = &case.step(0).phase else { panic!() };
    assert_eq!(wait.signal.as_ref().unwrap().key, "order-7");
}

#[test]
fn a_run_takes_its_subject_and_its_request_is_remembered() {
    let mut request = Opening::of(tasks(1)).request();
    request.idempotency = Some(IdempotencyRow {
        client: "cli".into(),
        key: "k".into(),
        source: "api".into(),
        request_hash: Hash([0; 32]),
        expires_at: super::case::START,
    });
    let (run, opening) = open(request).unwrap();
    let decided = start(&run, opening, CommandOrigin::system(super::case::START)).unwrap();
    let change = decided.settle(|asking| bound(&Answers::new(), &AllowDeclared, asking)).unwrap();
    assert!(matches!(
        change.side.as_slice(),
        [SideWrite::Idempotency(_), SideWrite::TakeSubject { subject }] if subject == "INC-1"
    ));
}

#[test]
fn what_is_too_large_is_refused() {
    let attempt = |change: &dyn Fn(&mut Header)| {
        let mut request = Opening::of(tasks(1)).request();
        change(&mut request.header);
        open(request).map(|_| ())
    };
    let long = |bytes: usize| "x".repeat(bytes);
    let too_large = |answer: Result<(), Rejection>| matches!(answer, Err(Rejection::TooLarge { .. }));
    assert!(too_large(attempt(&|header| header.inputs = json(&format!("\"{}\"", long(limits::PAYLOAD_BYTES_MAX))))));
    assert!(too_large(attempt(&|header| header.workspace = long(limits::NAME_BYTES_MAX + 1))));
    for nameless in ["", " "] {
        let refused = attempt(&|header| header.workspace = nameless.into());
        assert!(matches!(refused, Err(Rejection::InvalidInput { .. })), "{refused:?}");
    }
    assert!(too_large(attempt(&|header| header.subject = Some(long(limits::SUBJECT_BYTES_MAX + 1)))));
    assert!(too_large(attempt(&|header| {
        header.labels.insert("team".into(), long(limits::NAME_BYTES_MAX + 1));
    })));
    let many = attempt(&|header| {
        header.labels = (0..=limits::LABELS_MAX).map(|at| (at.to_string(), String::new())).collect();
    });
    assert!(matches!(many, Err(Rejection::InvalidInput { .. })));
    attempt(&|_| ()).unwrap();
}

#[test]
fn inherited_steps_keep_their_results_and_are_passed_over() {
    use StepState::{Pending, Ready, Skipped, Succeeded};
    let kept = |output: &str| Step { output: Some(json(output)), phase: Phase::Succeeded, ..Step::default() };
    let skipped = Step { phase: Phase::Skipped { why: "not needed".into() }, ..Step::default() };
    // The second step is repeated, though what follows it is kept.
    let inherited = vec![(0, kept("1")), (2, kept("3")), (3, skipped)];
    let mut case = Opening { inherited, ..Opening::of(tasks(5)) }.start();
    assert_eq!(case.steps(), [Succeeded, Ready, Succeeded, Skipped, Pending]);
    assert_eq!(
        case.names(),
        ["session.created", "execution.step.completed", "execution.step.completed", "execution.step.skipped"]
    );
    assert_eq!((case.run.position, case.step(0).attempt), (1, 0));
    case.run_step();
    assert_eq!((case.run.position, case.step(4).state()), (4, Ready));
    case.run_step();
    assert_eq!(case.state(), RunState::Succeeded);
}
