//! One active run per subject, and what becomes of the others, on both databases.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::harness::{Database, done, ends, engine, plan, plan_with, reaches, start, stop, tenant, work};
use crate::on_both;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::rules::OnConflict;
use interlock_core::plan::{Accept, StepSpec, WaitFor, Work};
use interlock_core::run::change::Context;
use interlock_core::state::{Admission, Detail, Reason, RunState};
use interlock_core::time::Millis;
use interlock_engine::commands::signal::SignalRequest;
use interlock_engine::{EncodedPlan, Engine, EngineError, IdempotencyKey, StartRun, Started};

fn about(tenant: TenantId, plan: &Arc<EncodedPlan>, on_conflict: OnConflict) -> StartRun {
    StartRun { subject: Some("INC-1".into()), on_conflict, ..start(tenant, plan, "{}") }
}

/// Waits for `go`, so that the test says when it ends.
fn waits() -> Arc<EncodedPlan> {
    let until = WaitFor::Signal { signal: "go".into(), key: Some("${{ run.id }}".into()), accept: Accept::SinceRun };
    plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None })])
}

async fn go(engine: &Engine, tenant: TenantId, run: RunId) {
    let payload = Json::parse("{}", 10).unwrap();
    let key = run.to_string();
    engine
        .signals()
        .signal(SignalRequest {
            tenant,
            signal_type: "go".into(),
            key,
            payload,
            source_id: None,
            broadcast: false,
            run: None,
        })
        .await
        .unwrap();
}

async fn overview(engine: &Engine, tenant: TenantId, run: RunId) -> (RunState, Option<Detail>) {
    let summary = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
    (summary.state, summary.detail)
}

const QUEUED: (RunState, Option<Detail>) = (RunState::Pending, Some(Detail::SubjectBusy));

on_both! {
    async fn those_who_queue_start_one_after_the_other_in_their_order(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = waits();
        let mut runs = Vec::new();
        for number in 0..4 {
            let Started { run, admission, .. } =
                engine.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap();
            assert_eq!(admission, if number == 0 { Admission::Started } else { Admission::Queued });
            runs.push(run);
        }
        for (at, run) in runs.iter().enumerate() {
            reaches(&engine, tenant, *run, RunState::WaitingSignal).await;
            for later in &runs[at + 1..] {
                assert_eq!(overview(&engine, tenant, *later).await, QUEUED);
            }
            go(&engine, tenant, *run).await;
            assert_eq!(ends(&engine, tenant, *run).await, RunState::Succeeded);
        }
        assert_eq!(engine.store().subject_holder(tenant, "INC-1").await.unwrap(), None);
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn a_queue_survives_a_restart(database: &Database) {
        let first = engine(database).await;
        let tenant = tenant(&first, |_| {}).await;
        let plan = waits();
        let holder = first.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap().run;
        let next = first.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap().run;
        let last = first.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap().run;
        stop(first).await;
        let again = engine(database).await;
        assert_eq!(overview(&again, tenant, last).await, QUEUED);
        for run in [holder, next, last] {
            reaches(&again, tenant, run, RunState::WaitingSignal).await;
            go(&again, tenant, run).await;
            assert_eq!(ends(&again, tenant, run).await, RunState::Succeeded);
        }
        stop(again).await;
    }

    async fn whoever_does_not_queue_is_told_who_is_in_the_way(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = waits();
        let holder = engine.runs().start(about(tenant, &plan, OnConflict::Reject)).await.unwrap().run;
        let refused = engine.runs().start(about(tenant, &plan, OnConflict::Reject)).await;
        assert!(matches!(refused, Err(EngineError::SubjectBusy { run, .. }) if run == holder), "{refused:?}");
        // A queued run can be canceled and leaves nothing behind.
        let queued = engine.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap().run;
        engine.runs().cancel(tenant, queued, "no longer".into(), true, Context::SYSTEM).await.unwrap();
        assert_eq!(overview(&engine, tenant, queued).await.0, RunState::Canceled);
        go(&engine, tenant, holder).await;
        ends(&engine, tenant, holder).await;
        engine.runs().start(about(tenant, &plan, OnConflict::Reject)).await.unwrap();
        assert!(engine.store().check().await.unwrap().is_empty());
        stop(engine).await;
    }

    async fn a_queued_run_has_its_deadline(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        engine.runs().start(about(tenant, &waits(), OnConflict::Queue)).await.unwrap();
        let short = plan_with(vec![StepSpec::task("a", "a")], |plan| plan.timeout = Some(Millis(50)));
        let queued = engine.runs().start(about(tenant, &short, OnConflict::Queue)).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, queued).await, RunState::Failed);
        let summary = engine.store().run_overview(tenant, queued).await.unwrap().unwrap();
        assert_eq!(summary.reason, Some(Reason::Deadline));
        assert!(engine.store().subject_line(tenant, "INC-1", 10).await.unwrap().queue.is_empty());
        stop(engine).await;
    }

    async fn the_newest_replaces_those_before_it(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = waits();
        let holder = engine.runs().start(about(tenant, &plan, OnConflict::CancelPrevious)).await.unwrap().run;
        let queued = engine.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap().run;
        let newest = engine.runs().start(about(tenant, &plan, OnConflict::CancelPrevious)).await.unwrap().run;
        for replaced in [holder, queued] {
            assert_eq!(ends(&engine, tenant, replaced).await, RunState::Canceled);
        }
        reaches(&engine, tenant, newest, RunState::WaitingSignal).await;
        go(&engine, tenant, newest).await;
        assert_eq!(ends(&engine, tenant, newest).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_start_may_become_a_signal_once(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let until = WaitFor::Signal { signal: "run.requested".into(), key: None, accept: Accept::SinceRun };
        let plan = plan(vec![StepSpec::new("wait", Work::Wait { until, timeout: None })]);
        let keyed = |key: &str| StartRun {
            idempotency: Some(IdempotencyKey { client: "test".into(), key: key.into() }),
            ..about(tenant, &plan, OnConflict::Signal)
        };
        let holder = engine.runs().start(keyed("first")).await.unwrap();
        assert_eq!(holder.admission, Admission::Started);
        let told = engine.runs().start(keyed("second")).await.unwrap();
        assert_eq!((told.run, told.admission, told.replayed), (holder.run, Admission::Signaled, false));
        assert_eq!(ends(&engine, tenant, holder.run).await, RunState::Succeeded);
        let loaded = engine.store().load_runs(&[(tenant, holder.run)]).await.unwrap().pop().unwrap();
        let heard = loaded.steps[0].output.as_ref().unwrap().to_value().unwrap();
        assert_eq!(heard["trigger"]["type"], "api");
        // The repeat of a request that became a signal starts nothing, though the subject is free by now.
        let repeat = engine.runs().start(keyed("second")).await.unwrap();
        assert_eq!((repeat.run, repeat.replayed, repeat.admission), (holder.run, true, Admission::Signaled));
        let repeat = engine.runs().start(keyed("first")).await.unwrap();
        assert_eq!((repeat.run, repeat.replayed, repeat.admission), (holder.run, true, Admission::Started));
        assert_eq!(engine.runs().start(keyed("third")).await.unwrap().admission, Admission::Started);
        stop(engine).await;
    }

    async fn the_repeat_of_a_start_that_queued_is_answered_so(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = waits();
        let holder = engine.runs().start(about(tenant, &plan, OnConflict::Queue)).await.unwrap().run;
        let keyed = || StartRun {
            idempotency: Some(IdempotencyKey { client: "test".into(), key: "k".into() }),
            ..about(tenant, &plan, OnConflict::Queue)
        };
        let first = engine.runs().start(keyed()).await.unwrap();
        assert_eq!((first.admission, first.replayed), (Admission::Queued, false));
        go(&engine, tenant, holder).await;
        reaches(&engine, tenant, first.run, RunState::WaitingSignal).await;
        let repeat = engine.runs().start(keyed()).await.unwrap();
        assert_eq!((repeat.run, repeat.admission, repeat.replayed), (first.run, Admission::Queued, true));
        stop(engine).await;
    }

    // Two servers where the database allows it, many at once: never two of one subject, and no run is forgotten.
    async fn never_two_at_once(database: &Database) {
        let engines = match &database.url {
            interlock_store::StoreUrl::Postgres(_) => vec![engine(database).await, engine(database).await],
            _ => vec![engine(database).await],
        };
        let tenant = tenant(&engines[0], |_| {}).await;
        let (active, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        for engine in &engines {
            let (active, most) = (Arc::clone(&active), Arc::clone(&most));
            work(engine, 8, move |_| {
                let (active, most) = (Arc::clone(&active), Arc::clone(&most));
                async move {
                    most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    active.fetch_sub(1, Ordering::SeqCst);
                    done("{}")
                }
            });
        }
        let plan = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")]);
        let handles: Vec<_> = engines.iter().map(Engine::runs).collect();
        let starts = (0..24).map(|number| handles[number % handles.len()].start(about(tenant, &plan, OnConflict::Queue)));
        for started in futures::future::join_all(starts).await {
            assert_eq!(ends(&engines[0], tenant, started.unwrap().run).await, RunState::Succeeded);
        }
        assert_eq!(most.load(Ordering::SeqCst), 1);
        assert!(engines[0].store().check().await.unwrap().is_empty());
        for engine in engines {
            stop(engine).await;
        }
    }
}
