//! Unsafe steps of workers that do not name their effects: the intent comes with the claim.

use std::time::Duration;

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::StepSpec;
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, ReceiptState, RunState};
use interlock_core::work::{
    Assignment, EffectAnswer, EffectIntent, EffectOutcome, Report, ReportedOutcome, WorkerHello,
};
use interlock_engine::commands::control::ResolveRequest;
use interlock_engine::{Engine, EngineError};

use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_that_loses_workers, hello, plan, reaches, start, stop, tenant,
};
use crate::on_both;

on_both! {
    async fn a_lost_worker_leaves_a_doubt_and_its_late_report_settles_it(database: &Database) {
        let engine = engine_that_loses_workers(database).await;
        let (tenant, run, session, claimed) = unsafe_step(&engine).await;
        reaches(&engine, tenant, run, RunState::Paused).await;
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::InDoubt]);
        let early = engine.runs().resume_as_new(tenant, run, None, None, Context::operator("olga")).await;
        assert!(early.is_err(), "no run may repeat it while it is in doubt");
        assert!(report(&engine, session, &claimed, done("7")).await.unwrap());
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::Succeeded]);
        assert!(!report(&engine, session, &claimed, done("7")).await.unwrap(), "a repeat of what was recorded");
        stop(engine).await;
    }

    async fn what_the_worker_reports_settles_the_claim(database: &Database) {
        let engine = engine(database).await;
        let (tenant, run, session, claimed) = unsafe_step(&engine).await;
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::Intent]);
        report(&engine, session, &claimed, ReportedOutcome::UnknownTask).await.unwrap();
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::Failed], "nothing was done");
        let again = next(&engine, session).await;
        assert_eq!(again.at.attempt, 2);
        report(&engine, session, &again, done("1")).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::Failed, ReceiptState::Succeeded]);

        // An error says nothing about what was done before it.
        let (tenant, run, session, claimed) = unsafe_step(&engine).await;
        let error = interlock_core::plan::retry::StepError::new(interlock_core::plan::retry::ErrorClass::Timeout, "T", "no answer");
        report(&engine, session, &claimed, ReportedOutcome::Retry { error, backoff: None }).await.unwrap();
        reaches(&engine, tenant, run, RunState::Paused).await;
        stop(engine).await;
    }

    async fn a_worker_that_names_its_effects_after_all_is_believed(database: &Database) {
        let engine = engine(database).await;
        let (tenant, run, session, claimed) = unsafe_step(&engine).await;
        let (at, epoch) = (claimed.at, claimed.epoch);
        let effect = EffectClass::Unsafe;
        let intent = EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() };
        let EffectAnswer::Perform { receipt, .. } = engine.workers().intent(session, intent.clone()).await.unwrap() else { panic!() };
        engine.workers().outcome(session, EffectOutcome { at, epoch, receipt, happened: true, response: None }).await.unwrap();
        report(&engine, session, &claimed, done("1")).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::Failed, ReceiptState::Succeeded]);
        let reserved = EffectIntent { template: "interlock:claim".into(), ..intent };
        let refused = engine.workers().intent(session, reserved).await;
        assert!(matches!(refused, Err(EngineError::Rejected(Rejection::InvalidInput { .. }))), "{refused:?}");
        stop(engine).await;
    }

    async fn a_claim_that_was_never_delivered_goes_back_without_a_doubt(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(plain()).await.unwrap().session;
        // The poll's caller goes away as soon as the step is there.
        let workers = engine.workers();
        let polling = workers.poll(session, 1, PATIENCE);
        let run = {
            let mut polling = Box::pin(polling);
            for _ in 0..3 {
                assert!(futures::poll!(&mut polling).is_pending());
            }
            let run = engine.runs().start(start(tenant, &plan(vec![pay()]), "null")).await.unwrap().run;
            // It is the poll that claims.
            let _ = futures::poll!(&mut polling);
            reaches(&engine, tenant, run, RunState::Running).await;
            let mut watcher = engine.events().watch_run(tenant, run, 0);
            while states(&engine, tenant, run).await.is_empty() {
                watcher.next_of_run().await.unwrap();
            }
            // It is handed over right after its commit.
            tokio::time::sleep(Duration::from_secs(1)).await;
            run
        };
        engine.workers().unregister(session).await.unwrap();
        assert_eq!(states(&engine, tenant, run).await, [ReceiptState::Failed]);
        let other = engine.workers().register(plain()).await.unwrap().session;
        let claimed = next(&engine, other).await;
        report(&engine, other, &claimed, done("1")).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_report_that_comes_after_the_doubt_was_resolved_is_refused(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let steps = vec![pay(), StepSpec::task("after", "after")];
        let run = engine.runs().start(start(tenant, &plan(steps), "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = next(&engine, session).await;
        let (at, epoch) = (claimed.at, claimed.epoch);
        let effect = EffectClass::Unsafe;
        let intent = EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() };
        let EffectAnswer::Perform { receipt, .. } = engine.workers().intent(session, intent).await.unwrap() else { panic!() };
        engine.workers().left_out(at).await.unwrap();
        reaches(&engine, tenant, run, RunState::Paused).await;
        let (step, reason) = ("pay".to_owned(), "looked it up".to_owned());
        let request = ResolveRequest { step, resolution: Resolution::Happened, output: None, reason };
        engine.runs().resolve(tenant, run, request, Context::operator("olga")).await.unwrap();
        for restarted in [false, true] {
            if restarted {
                // What is known must not depend on what is in memory.
                let after = next(&engine, session).await;
                report(&engine, session, &after, done("2")).await.unwrap();
                assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
            }
            let late = report(&engine, session, &claimed, done("1")).await;
            assert!(late.is_err(), "it was never recorded: {late:?}");
        }
        let outcome = |happened| EffectOutcome { at, epoch, receipt, happened, response: None };
        engine.workers().outcome(session, outcome(true)).await.unwrap();
        let opposite = engine.workers().outcome(session, outcome(false)).await;
        assert!(matches!(opposite, Err(EngineError::Rejected(Rejection::EffectRecorded { .. }))), "{opposite:?}");
        stop(engine).await;
    }
}

/// A worker that has not said what it can do.
fn plain() -> WorkerHello {
    WorkerHello { capabilities: None, ..hello(1) }
}

fn pay() -> StepSpec {
    StepSpec { effect: Some(EffectClass::Unsafe), ..StepSpec::task("pay", "pay") }
}

/// An unsafe step that such a worker has taken.
async fn unsafe_step(engine: &Engine) -> (TenantId, RunId, SessionId, Assignment) {
    let tenant = tenant(engine, |_| {}).await;
    let session = engine.workers().register(WorkerHello { tenant: Some(tenant), ..plain() }).await.unwrap().session;
    let run = engine.runs().start(start(tenant, &plan(vec![pay()]), "null")).await.unwrap().run;
    (tenant, run, session, next(engine, session).await)
}

async fn next(engine: &Engine, session: SessionId) -> Assignment {
    engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().expect("work")
}

/// Answers whether the report was recorded now.
async fn report(
    engine: &Engine,
    session: SessionId,
    assignment: &Assignment,
    outcome: ReportedOutcome,
) -> Result<bool, EngineError> {
    let report = Report {
        at: assignment.at,
        epoch: assignment.epoch,
        outcome,
        claim_next: false,
        cost: None,
        credentials: Vec::new(),
    };
    engine.workers().complete(session, report).await.map(|completed| completed.recorded)
}

async fn states(engine: &Engine, tenant: TenantId, run: RunId) -> Vec<ReceiptState> {
    let mut receipts: Vec<_> =
        engine.store().receipts(tenant, run).await.unwrap().into_iter().map(|row| row.receipt).collect();
    receipts.sort_by_key(|receipt| (receipt.attempt, receipt.intent_at));
    receipts.into_iter().map(|receipt| receipt.state).collect()
}
