//! Whole runs through the real engine, on both databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_that_loses_workers, hello, plan, plan_with, reaches, start, stop,
    tenant, work,
};
use crate::on_both;
use interlock_core::ids::{SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::retry::{Backoff, ErrorClass, RetryPolicy, StepError};
use interlock_core::plan::{Accept, OnFailure, RollbackCondition, RollbackSpec, StepSpec, Undo, WaitFor, Work};
use interlock_core::rejection::Rejection;
use interlock_core::run::approval::Voter;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState, StepState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome, Report, ReportedOutcome};
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::{Engine, EngineError, IdempotencyKey};
use interlock_store::SourceId;

fn task(key: &str) -> StepSpec {
    StepSpec::task(key, key)
}

fn quick_retry(mut step: StepSpec, max_attempts: u32) -> StepSpec {
    step.retry = Some(RetryPolicy { max_attempts, backoff: Backoff::Fixed { delay: Millis(10) } });
    step
}

fn failing() -> ReportedOutcome {
    ReportedOutcome::Retry {
        error: StepError::new(ErrorClass::Unavailable, "DOWN", "the other side is down"),
        backoff: None,
    }
}

on_both! {
    async fn a_run_goes_through_all_its_steps_and_leaves_their_outputs(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 4, |assignment| async move { done(&format!(r#"{{"from":"{}"}}"#, assignment.step)) });
        let mut second = task("second");
        second.work = Work::Task { handler: "second".into(), with: Some(Json::parse(r#"{"n":"${{ inputs.n + 1 }}","first":"${{ steps.first.output.from }}"}"#, 200).unwrap()) };
        let sum = StepSpec::new("sum", Work::Transform { value: Json::parse(r#"{"twice":"${{ inputs.n * 2 }}"}"#, 100).unwrap() });
        let mut never = task("never");
        never.condition = Some("inputs.n > 100".into());
        let plan = plan(vec![task("first"), second, sum, never, task("last")]);
        let run = engine.runs().start(start(tenant, &plan, r#"{"n":20}"#)).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);

        let steps = engine.store().steps(tenant, run).await.unwrap();
        let states: Vec<_> = steps.iter().map(|step| (step.key.as_str(), step.state)).collect();
        assert_eq!(states, [
            ("first", StepState::Succeeded), ("second", StepState::Succeeded), ("sum", StepState::Succeeded),
            ("never", StepState::Skipped), ("last", StepState::Succeeded),
        ]);
        assert_eq!(steps[2].output.as_ref().unwrap().as_str(), r#"{"twice":40}"#);
        let loaded = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().unwrap();
        assert_eq!(loaded.input(1).to_value().unwrap(), serde_json::json!({"n": 21, "first": "first"}));

        let events = engine.store().events(tenant, run, 0, 100).await.unwrap();
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn a_failed_step_is_tried_again_until_its_budget_is_spent(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        work(&engine, 4, move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { failing() }
        });
        let run = engine.runs().start(start(tenant, &plan(vec![quick_retry(task("a"), 3)]), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        assert_eq!(tries.load(Ordering::SeqCst), 3);
        stop(engine).await;
    }

    async fn repeated_starts_make_one_run(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![task("a")]);
        let request = || {
            let mut request = start(tenant, &plan, r#"{"order":1}"#);
            request.idempotency = Some(IdempotencyKey { client: "shop".into(), key: "order-1".into() });
            request
        };
        let runs = engine.runs();
        let all = futures::future::join_all((0..500).map(|_| runs.start(request()))).await;
        let first = all[0].as_ref().unwrap().run;
        assert!(all.iter().all(|started| started.as_ref().unwrap().run == first));
        assert_eq!(all.iter().filter(|started| !started.as_ref().unwrap().replayed).count(), 1);
        let mut other = request();
        other.inputs = Json::parse(r#"{"order":2}"#, 100).unwrap();
        assert!(matches!(engine.runs().start(other).await, Err(EngineError::IdempotencyMismatch)));
        stop(engine).await;
    }

    async fn one_active_run_holds_a_subject(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![task("a")]);
        let request = || {
            let mut request = start(tenant, &plan, "null");
            request.subject = Some("INC-1".into());
            request
        };
        let first = engine.runs().start(request()).await.unwrap().run;
        match engine.runs().start(request()).await {
            Err(EngineError::SubjectBusy { run, .. }) => assert_eq!(run, first),
            other => panic!("{other:?}"),
        }
        engine.runs().cancel(tenant, first, "test".into(), false, Context::operator("op")).await.unwrap();
        engine.runs().start(request()).await.unwrap();
        stop(engine).await;
    }

    async fn bad_input_is_refused_by_name_and_leaves_nothing(database: &Database) {
        let engine = engine(database).await;
        let no_tenant = TenantId(engine.fresh_id());
        let plan = plan(vec![task("a")]);
        match engine.runs().start(start(no_tenant, &plan, "null")).await {
            Err(EngineError::Rejected(Rejection::UnknownTenant { tenant })) => assert_eq!(tenant, no_tenant),
            other => panic!("{other:?}"),
        }
        let tenant = tenant(&engine, |_| {}).await;
        let huge = format!("\"{}\"", "x".repeat(1 << 20));
        let mut request = start(tenant, &plan, "null");
        request.inputs = Json::trusted(huge);
        assert!(matches!(engine.runs().start(request).await, Err(EngineError::Rejected(Rejection::TooLarge { .. }))));
        let stranger = interlock_core::ids::RunId(engine.fresh_id());
        let unknown = engine.runs().cancel(tenant, stranger, "x".into(), false, Context::SYSTEM).await;
        assert!(matches!(unknown, Err(EngineError::Rejected(Rejection::UnknownRun { .. }))), "{unknown:?}");
        assert_eq!(engine.store().stats().await.unwrap().live_runs, 0);
        stop(engine).await;
    }

    async fn signals_wake_waits_whether_early_or_late(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let wait = |key: &str| StepSpec::new("wait", Work::Wait {
            until: WaitFor::Signal { signal: "go".into(), key: Some(key.into()), accept: Accept::Any },
            timeout: Some(Millis::from_mins(5)),
        });
        let signal = |key: &str, id: &str| SignalRequest {
            tenant, signal_type: "go".into(), key: key.into(),
            payload: Json::parse(r#"{"n":1}"#, 100).unwrap(), source_id: Some(SourceId::of_tenant(id)), broadcast: false,
            run: None,
        };
        // Early.
        engine.signals().signal(signal("early", "1")).await.unwrap();
        assert_eq!(engine.signals().signal(signal("early", "1")).await.unwrap(), Signaled::Duplicate);
        let early = engine.runs().start(start(tenant, &plan(vec![wait("early")]), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, early).await, RunState::Succeeded);
        // Late.
        let late = engine.runs().start(start(tenant, &plan(vec![wait("late")]), "null")).await.unwrap().run;
        reaches(&engine, tenant, late, RunState::WaitingSignal).await;
        engine.signals().signal(signal("late", "2")).await.unwrap();
        assert_eq!(ends(&engine, tenant, late).await, RunState::Succeeded);
        let steps = engine.store().steps(tenant, late).await.unwrap();
        assert_eq!(steps[0].output.as_ref().unwrap().as_str(), r#"{"n":1}"#);
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn timers_fire_and_waits_time_out(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let timer = StepSpec::new("sleep", Work::Wait { until: WaitFor::For(Millis(150)), timeout: None });
        let run = engine.runs().start(start(tenant, &plan(vec![timer]), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let wait = StepSpec::new("wait", Work::Wait {
            until: WaitFor::Signal { signal: "never".into(), key: None, accept: Accept::SinceRun },
            timeout: Some(Millis(150)),
        });
        let run = engine.runs().start(start(tenant, &plan(vec![wait]), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        let deadline = plan_with(vec![StepSpec::new("long", Work::Wait { until: WaitFor::For(Millis(60_000)), timeout: None })], |plan| {
            plan.timeout = Some(Millis(150));
        });
        let run = engine.runs().start(start(tenant, &deadline, "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        stop(engine).await;
    }

    async fn an_approval_needs_its_quorum_and_not_the_starter(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let gate = StepSpec::new("gate", Work::Approval(serde_json::from_str(r#"{"approvers":["sre"],"quorum":2}"#).unwrap()));
        let mut request = start(tenant, &plan(vec![gate]), "null");
        request.started_by = Some("ada".into());
        let run = engine.runs().start(request).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;
        let approval = engine.store().approvals_of(tenant, run).await.unwrap()[0].id;
        let vote = |person: &str, group: &str| VoteRequest {
            approval,
            voter: Voter { self_approval: true, ..Voter::new(person, vec![group.into()]) },
            approve: true,
            notes: None,
        };
        for (person, group) in [("ada", "sre"), ("eve", "sales")] {
            assert!(engine.runs().vote(tenant, run, vote(person, group)).await.is_err(), "{person}");
        }
        engine.runs().vote(tenant, run, vote("bob", "sre")).await.unwrap();
        assert!(engine.runs().vote(tenant, run, vote("bob", "sre")).await.is_err());
        let standing = engine.runs().vote(tenant, run, vote("cleo", "sre")).await.unwrap();
        assert_eq!(standing.state, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_failed_run_is_rolled_back_newest_first(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let undone = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = Arc::clone(&undone);
        work(&engine, 4, move |assignment| {
            if assignment.handler == "undo" {
                log.lock().unwrap().push(assignment.step.clone());
            }
            let outcome = if assignment.step == "c" {
                ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") }
            } else {
                done("1")
            };
            async move { outcome }
        });
        let undoable = |key: &str| {
            let mut step = task(key);
            step.rollback = Some(RollbackSpec { conditions: RollbackCondition::ALL.to_vec(), ..RollbackSpec::by(Undo::Handler("undo".into())) });
            step
        };
        let run = engine.runs().start(start(tenant, &plan(vec![undoable("a"), undoable("b"), task("c")]), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        assert_eq!(*undone.lock().unwrap(), ["rollback:b", "rollback:a"]);
        let steps = engine.store().steps(tenant, run).await.unwrap();
        assert_eq!(steps[0].state, StepState::RolledBack);
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn an_operator_retries_skips_and_restarts_in_place(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let broken = Arc::new(AtomicU32::new(1));
        let state = Arc::clone(&broken);
        work(&engine, 4, move |assignment| {
            let fails = assignment.step == "b" && state.load(Ordering::SeqCst) == 1;
            async move {
                if fails { ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") } } else { done("1") }
            }
        });
        let plan = plan_with(vec![task("a"), task("b"), task("c")], |plan| plan.on_failure = Some(OnFailure::Pause));
        let operator = || Context::operator("op");
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::Paused).await;
        assert!(matches!(engine.runs().resume(tenant, run, operator()).await, Err(EngineError::Rejected(Rejection::DirectiveDue { .. }))));
        engine.runs().skip(tenant, run, "known to be broken".into(), None, operator()).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);

        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::Paused).await;
        broken.store(0, Ordering::SeqCst);
        engine.runs().restart_from(tenant, run, "a", operator()).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let steps = engine.store().steps(tenant, run).await.unwrap();
        assert!(steps[0].attempt == 2 && steps[1].attempt == 2, "{steps:?}");
        stop(engine).await;
    }

    async fn a_terminal_run_is_resumed_as_a_new_one(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let ran = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = Arc::clone(&ran);
        work(&engine, 4, move |assignment| {
            let mut ran = log.lock().unwrap();
            ran.push(assignment.step.clone());
            let fails = assignment.step == "b" && ran.len() == 2;
            async move {
                if fails { ReportedOutcome::Dead { error: StepError::new(ErrorClass::Invalid, "NO", "no") } } else { done("1") }
            }
        });
        let run = engine.runs().start(start(tenant, &plan(vec![task("a"), task("b")]), "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        assert!(matches!(engine.runs().cancel(tenant, run, "x".into(), false, Context::SYSTEM).await, Err(EngineError::Rejected(Rejection::Terminal { .. }))));
        let second = engine.runs().resume_as_new(tenant, run, None, None, Context::operator("op")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, second).await, RunState::Succeeded);
        assert_eq!(*ran.lock().unwrap(), ["a", "b", "b"]);
        let overview = engine.store().run_overview(tenant, second).await.unwrap().unwrap();
        assert_eq!((overview.resumed_from, overview.resume_count), (Some(run), 1));
        stop(engine).await;
    }

    async fn a_run_has_one_successor_at_a_time(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &plan(vec![task("a")]), "null")).await.unwrap().run;
        let runs = engine.runs();
        let cancel = |run| runs.cancel(tenant, run, "x".into(), false, Context::operator("op"));
        let resume = |run, key: Option<&str>| {
            let key = key.map(|key| IdempotencyKey { client: "op".into(), key: key.into() });
            runs.resume_as_new(tenant, run, None, key, Context::operator("op"))
        };
        cancel(run).await.unwrap();
        // Two people at once.
        let (one, other) = futures::join!(resume(run, Some("one")), resume(run, Some("other")));
        let (key, made, refused) = match (one, other) {
            (Ok(made), Err(refused)) => ("one", made.run, refused),
            (Err(refused), Ok(made)) => ("other", made.run, refused),
            both => panic!("{both:?}"),
        };
        assert!(matches!(refused, EngineError::Rejected(Rejection::Continued { by, .. }) if by == made), "{refused}");
        assert_eq!(resume(run, Some(key)).await.unwrap().run, made, "a repeat is the same request");
        // Once it has ended the chain goes on from there, and nowhere else.
        cancel(made).await.unwrap();
        let third = resume(made, None).await.unwrap().run;
        let refused = resume(run, None).await.unwrap_err();
        assert!(matches!(refused, EngineError::Rejected(Rejection::Continued { by, .. }) if by == third), "{refused}");
        stop(engine).await;
    }

    async fn work_goes_on_after_the_engine_was_stopped(database: &Database) {
        let first = engine(database).await;
        let tenant = tenant(&first, |_| {}).await;
        let timer = StepSpec::new("sleep", Work::Wait { until: WaitFor::For(Millis(300)), timeout: None });
        let plan = plan(vec![timer, task("a"), task("b")]);
        let mut runs = Vec::new();
        for _ in 0..20 {
            runs.push(first.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
        }
        stop(first).await;
        let second = engine(database).await;
        work(&second, 8, |_| async { done("1") });
        for run in runs {
            assert_eq!(ends(&second, tenant, run).await, RunState::Succeeded);
        }
        assert!(second.store().check().await.unwrap().is_empty());
        stop(second).await;
    }

    async fn a_lost_worker_is_noticed_and_its_late_report_refused(database: &Database) {
        let engine = engine_that_loses_workers(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &plan(vec![task("a")]), "null")).await.unwrap().run;
        // A worker that claims and is never heard of again.
        let lost = engine.workers().register(crate::harness::hello(1)).await.unwrap().session;
        let claimed = engine.workers().poll(lost, 1, PATIENCE).await.unwrap().pop().unwrap();
        assert_eq!(claimed.at.attempt, 1);
        work(&engine, 1, |_| async { done("2") });
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let report = interlock_core::work::Report { at: claimed.at, epoch: claimed.epoch, outcome: done("1"), claim_next: false, cost: None, credentials: Vec::new() };
        let late = engine.workers().complete(lost, report).await;
        assert!(late.is_err(), "{late:?}");
        let steps = engine.store().steps(tenant, run).await.unwrap();
        assert_eq!((steps[0].attempt, steps[0].output.as_ref().unwrap().as_str()), (2, "2"));
        stop(engine).await;
    }

    async fn a_report_may_be_repeated(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        engine.runs().start(start(tenant, &plan(vec![task("a"), task("b")]), "null")).await.unwrap();
        let session = engine.workers().register(crate::harness::hello(1)).await.unwrap().session;
        let first = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        let report = || interlock_core::work::Report { at: first.at, epoch: first.epoch, outcome: done("1"), claim_next: true, cost: None, credentials: Vec::new() };
        let answer = engine.workers().complete(session, report()).await.unwrap();
        let again = engine.workers().complete(session, report()).await.unwrap();
        assert!(answer.recorded && !again.recorded);
        assert_eq!(answer.next, again.next);
        assert_eq!(answer.next.unwrap().step, "b");
        stop(engine).await;
    }

    // The keys of effects are shared by the whole chain; what was undone must be performed again all the same.
    async fn an_effect_that_was_undone_is_performed_again_in_a_resumed_run(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let mut pay = task("pay");
        pay.rollback = Some(RollbackSpec { conditions: RollbackCondition::ALL.to_vec(), ..RollbackSpec::by(Undo::Handler("refund".into())) });
        let plan = plan(vec![pay, task("ship")]);
        let first = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let mut performed = Vec::new();
        for (step, outcome) in [("pay", done("1")), ("ship", dead()), ("rollback:pay", done("2"))] {
            let assignment = next(&engine, session).await;
            assert_eq!(assignment.step, step);
            if step != "ship" {
                performed.push(perform(&engine, session, &assignment).await);
            }
            report_only(&engine, session, &assignment, outcome).await;
        }
        assert_eq!(ends(&engine, tenant, first).await, RunState::Failed);
        let second = engine.runs().resume_as_new(tenant, first, None, None, Context::operator("ann")).await.unwrap().run;
        for (step, outcome) in [("pay", done("1")), ("ship", dead()), ("rollback:pay", done("2"))] {
            let assignment = next(&engine, session).await;
            assert_eq!((assignment.at.run, assignment.step.as_str()), (second, step));
            if step != "ship" {
                performed.push(perform(&engine, session, &assignment).await);
            }
            report_only(&engine, session, &assignment, outcome).await;
        }
        assert_eq!(ends(&engine, tenant, second).await, RunState::Failed);
        let keys: std::collections::BTreeSet<_> = performed.iter().flatten().collect();
        assert_eq!((performed.len(), keys.len()), (4, 4), "each is performed, under a key of its own: {performed:?}");
        stop(engine).await;
    }

    async fn a_run_behind_a_gate_counts_against_the_rate(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |tenant| tenant.caps.max_runs_per_min = Some(1)).await;
        let timer = StepSpec::new("wait", Work::Wait { until: WaitFor::For(Millis(1)), timeout: None });
        let plan = plan(vec![timer, task("a")]);
        let session = engine.workers().register(hello(8)).await.unwrap().session;
        for _ in 0..3 {
            engine.runs().start(start(tenant, &plan, "null")).await.unwrap();
        }
        let mut claimed = 0;
        for _ in 0..4 {
            claimed += engine.workers().poll(session, 8, Duration::from_millis(300)).await.unwrap().len();
        }
        assert_eq!(claimed, 1);
        stop(engine).await;
    }
}

fn dead() -> ReportedOutcome {
    ReportedOutcome::Dead { error: StepError::new(ErrorClass::Terminal, "NO", "not today") }
}

async fn next(engine: &Engine, session: SessionId) -> Assignment {
    engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().expect("work")
}

/// Performs one effect, if it may, and answers with its key.
async fn perform(engine: &Engine, session: SessionId, assignment: &Assignment) -> Option<String> {
    let (at, epoch) = (assignment.at, assignment.epoch);
    let effect = EffectClass::Keyed;
    let intent = EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() };
    let EffectAnswer::Perform { receipt, key } = engine.workers().intent(session, intent).await.unwrap() else {
        return None;
    };
    engine
        .workers()
        .outcome(session, EffectOutcome { at, epoch, receipt, happened: true, response: None })
        .await
        .unwrap();
    Some(key)
}

async fn report_only(engine: &Engine, session: SessionId, assignment: &Assignment, outcome: ReportedOutcome) {
    let report = Report {
        at: assignment.at,
        epoch: assignment.epoch,
        outcome,
        claim_next: false,
        cost: None,
        credentials: Vec::new(),
    };
    engine.workers().complete(session, report).await.unwrap();
}
