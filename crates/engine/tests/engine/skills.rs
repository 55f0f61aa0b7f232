//! Workers are given what they said they can do.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::ids::{RunId, SessionId};
use interlock_core::json::Json;
use interlock_core::plan::retry::{Backoff, ErrorClass, RetryPolicy, StepError};
use interlock_core::plan::rules::Requires;
use interlock_core::plan::{Accept, StepSpec, WaitFor, Work};
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome, ReportedOutcome, WorkerHello};
use interlock_engine::Engine;
use interlock_engine::commands::signal::SignalRequest;

use crate::assignments::patient;
use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_with, hello, plan, plan_with, reaches, report, start, stop, tenant,
};
use crate::on_both;

on_both! {
    async fn workers_with_different_tasks_on_one_queue_do_not_take_each_others_steps(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let one = register(&engine, &["one"]).await;
        let two = register(&engine, &["two"]).await;
        let plan = plan(vec![StepSpec::task("a", "one"), StepSpec::task("b", "two"), StepSpec::task("c", "one")]);
        let mut runs: Vec<RunId> = Vec::new();
        for _ in 0..3 {
            runs.push(engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run);
        }
        // The second worker asks first, for what the first one has.
        assert!(engine.workers().poll(two, 3, Duration::from_millis(50)).await.unwrap().is_empty());
        for (session, task) in [(one, "one"), (two, "two"), (one, "one")] {
            for _ in 0..runs.len() {
                let claimed = next(&engine, session).await;
                assert_eq!((claimed.handler.as_str(), claimed.at.attempt), (task, 1), "no step is bounced");
                assert_eq!(report(&engine, session, &claimed, done("1")).await, None, "the next step is not for it");
            }
        }
        for run in runs {
            assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        }
        stop(engine).await;
    }

    async fn a_task_that_requires_something_is_for_workers_that_have_it(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut asking = StepSpec::task("b", "one");
        asking.rules.requires = Some(Requires { capabilities: vec!["gpu".into()], ..Requires::default() });
        let plan = plan(vec![StepSpec::task("a", "one"), asking]);
        let with = |capabilities: &[&str]| {
            let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
            WorkerHello { tasks: names(&["one"]), capabilities: names(capabilities), ..hello(4) }
        };
        let plain = engine.workers().register(with(&["effects"])).await.unwrap().session;
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let first = next(&engine, plain).await;
        assert_eq!(report(&engine, plain, &first, done("1")).await, None, "the next step is not claimed for it");
        assert!(engine.workers().poll(plain, 1, Duration::from_millis(50)).await.unwrap().is_empty());
        let able = engine.workers().register(with(&["effects", "gpu"])).await.unwrap().session;
        let second = next(&engine, able).await;
        assert_eq!((second.step.as_str(), second.at.attempt), ("b", 1), "no step is bounced");
        assert_eq!(report(&engine, able, &second, done("1")).await, None);
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_worker_that_names_an_environment_takes_runs_of_that_one_alone(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let environments = Some(BTreeSet::from(["dev".to_owned()]));
        let hello = WorkerHello { environments, tenant: Some(tenant), ..hello(4) };
        let session = engine.workers().register(hello).await.unwrap().session;
        let of = |profile: Option<&str>| {
            plan_with(vec![StepSpec::task("a", "one")], |plan| plan.rules.profile = profile.map(str::to_owned))
        };
        for other in [Some("prod-standard"), None] {
            engine.runs().start(start(tenant, &of(other), "null")).await.unwrap();
            assert_eq!(engine.workers().poll(session, 1, Duration::from_millis(300)).await.unwrap(), [], "{other:?}");
        }
        let run = engine.runs().start(start(tenant, &of(Some("dev-flex")), "null")).await.unwrap().run;
        assert_eq!(next(&engine, session).await.at.run, run);
        stop(engine).await;
    }

    // The keys of its effects tell which have happened, and only a worker that names them asks by these keys.
    async fn what_has_named_an_unsafe_effect_is_for_workers_that_name_theirs(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut pay = StepSpec::task("pay", "pay");
        pay.effect = Some(EffectClass::Unsafe);
        pay.retry = Some(RetryPolicy { max_attempts: 3, backoff: Backoff::Fixed { delay: Millis(1) } });
        let run = engine.runs().start(start(tenant, &plan(vec![pay]), "null")).await.unwrap().run;
        let naming = register(&engine, &["pay"]).await;
        let claimed = next(&engine, naming).await;
        let (at, epoch, effect) = (claimed.at, claimed.epoch, EffectClass::Unsafe);
        let intent = EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() };
        let answer = engine.workers().intent(naming, intent).await.unwrap();
        let EffectAnswer::Perform { receipt, .. } = answer else { panic!("{answer:?}") };
        let outcome = EffectOutcome { at, epoch, receipt, happened: true, response: None };
        engine.workers().outcome(naming, outcome).await.unwrap();
        let error = StepError::new(ErrorClass::Unavailable, "LATER", "the second call failed");
        report(&engine, naming, &claimed, ReportedOutcome::Retry { error, backoff: None }).await;

        let silent = WorkerHello { capabilities: None, ..hello(4) };
        let silent = engine.workers().register(silent).await.unwrap().session;
        assert!(engine.workers().poll(silent, 1, Duration::from_millis(300)).await.unwrap().is_empty());
        let claimed = next(&engine, naming).await;
        assert_eq!((claimed.at.run, claimed.at.attempt), (run, 2));
        let error = StepError::new(ErrorClass::Terminal, "NO", "gone");
        report(&engine, naming, &claimed, ReportedOutcome::Dead { error }).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);

        // A run that goes on from it shares the keys.
        let later = engine.runs().resume_as_new(tenant, run, None, None, Context::operator("olga")).await.unwrap().run;
        assert!(engine.workers().poll(silent, 1, Duration::from_millis(300)).await.unwrap().is_empty());
        assert_eq!(next(&engine, naming).await.at.run, later);
        stop(engine).await;
    }

    async fn what_no_worker_has_waits_without_being_tried_also_after_a_restart(database: &Database) {
        let before = engine(database).await;
        let tenant = tenant(&before, |_| {}).await;
        let waiting = before.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "absent")]), "null")).await.unwrap().run;
        stop(before).await;
        // Only the scan knows of it now, and not what it needs.
        let engine = engine(database).await;
        let other = register(&engine, &["present"]).await;
        assert!(engine.workers().poll(other, 1, Duration::from_millis(300)).await.unwrap().is_empty());
        let run = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "present")]), "null")).await.unwrap().run;
        let claimed = next(&engine, other).await;
        assert_eq!(claimed.at.run, run);
        report(&engine, other, &claimed, done("1")).await;
        let seen = engine.store().load_runs(&[(tenant, waiting)]).await.unwrap().pop().unwrap();
        assert_eq!((seen.current().attempt, seen.current().last_error.as_ref()), (0, None));

        let late = register(&engine, &["absent", "more"]).await;
        let claimed = next(&engine, late).await;
        assert_eq!((claimed.at.run, claimed.at.attempt), (waiting, 1));
        report(&engine, late, &claimed, done("1")).await;
        assert_eq!(ends(&engine, tenant, waiting).await, RunState::Succeeded);
        stop(engine).await;
    }
}

/// This server has the run in memory as it stood, at a step that no worker takes, when another server takes it on. Only
/// PostgreSQL has two servers at a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_given_out_by_a_server_that_knows_the_run_as_it_was() {
    let database = &Database::postgres().await;
    let (here, there) = (engine(database).await, engine(database).await);
    let tenant = tenant(&here, |_| {}).await;
    let until = WaitFor::Signal { signal: "go".into(), key: Some("k".into()), accept: Accept::Any };
    let wait = StepSpec::new("wait", Work::Wait { until, timeout: None });
    let plan = plan(vec![wait, StepSpec::task("a", "one")]);
    let run = there.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
    reaches(&there, tenant, run, RunState::WaitingSignal).await;
    here.runs().resume(tenant, run, Context::operator("olga")).await.expect_err("it is not paused");
    let signal = SignalRequest {
        tenant,
        signal_type: "go".into(),
        key: "k".into(),
        payload: Json::null(),
        source_id: None,
        broadcast: false,
        run: None,
    };
    there.signals().signal(signal).await.unwrap();
    let session = register(&here, &["one"]).await;
    let claimed = next(&here, session).await;
    assert_eq!((claimed.at.run, claimed.handler.as_str()), (run, "one"));
    report(&here, session, &claimed, done("1")).await;
    assert_eq!(ends(&here, tenant, run).await, RunState::Succeeded);
    stop(there).await;
    stop(here).await;
}

async fn register(engine: &Engine, tasks: &[&str]) -> SessionId {
    let tasks = Some(tasks.iter().map(|task| (*task).to_owned()).collect());
    engine.workers().register(WorkerHello { tasks, ..hello(4) }).await.unwrap().session
}

async fn next(engine: &Engine, session: SessionId) -> Assignment {
    engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().expect("work")
}
