//! A worker speaks and acts for what it was given itself, and for nothing that another worker of its tenant has.

use interlock_core::ids::{ReceiptId, SessionId};
use interlock_core::json::Json;
use interlock_core::plan::StepSpec;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::rejection::Rejection;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::work::output::{OutputBatch, OutputChunk, OutputStream};
use interlock_core::work::{
    Assignment, EFFECTS, EffectAnswer, EffectIntent, EffectOutcome, Report, ReportedOutcome, WorkerHello,
};
use interlock_engine::{Engine, EngineError};

use crate::harness::{Database, PATIENCE, done, ends, engine, hello, plan, start, stop, tenant};
use crate::on_both;

fn is_not_its_own<T: std::fmt::Debug>(answer: Result<T, EngineError>) {
    let refused = matches!(answer, Err(EngineError::Rejected(Rejection::StaleAttempt { .. })));
    assert!(refused, "{answer:?}");
}

async fn names(engine: &Engine) -> SessionId {
    let hello = WorkerHello { capabilities: Some(vec![EFFECTS.to_owned()]), ..hello(9) };
    engine.workers().register(hello).await.unwrap().session
}

fn intent(of: &Assignment) -> EffectIntent {
    let (at, epoch, effect) = (of.at, of.epoch, EffectClass::Unsafe);
    EffectIntent { at, epoch, template: "bank:pay".into(), number: 0, effect, request: Json::null() }
}

fn outcome(of: &Assignment, receipt: ReceiptId, happened: bool) -> EffectOutcome {
    EffectOutcome { at: of.at, epoch: of.epoch, receipt, happened, response: None }
}

fn report(of: &Assignment, outcome: ReportedOutcome) -> Report {
    Report { at: of.at, epoch: of.epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() }
}

fn output(of: &Assignment) -> OutputBatch {
    let chunk = OutputChunk { seq: 1, stream: OutputStream::Stdout, text: "forged".into() };
    OutputBatch { at: of.at, epoch: of.epoch, chunks: vec![chunk] }
}

on_both! {
    async fn nobody_acts_or_speaks_for_what_another_worker_has(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let (holder, other) = (names(&engine).await, names(&engine).await);
        let mut step = StepSpec::task("pay", "pay");
        step.effect = Some(EffectClass::Unsafe);
        let steps = plan(vec![step]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        let held = engine.workers().poll(holder, 1, PATIENCE).await.unwrap().remove(0);
        let workers = engine.workers();
        let failed = || ReportedOutcome::Dead { error: StepError::new(ErrorClass::Terminal, "NO", "no") };

        is_not_its_own(workers.intent(other, intent(&held)).await);
        is_not_its_own(workers.output(other, output(&held)).await);
        is_not_its_own(workers.complete(other, report(&held, failed())).await);
        let EffectAnswer::Perform { receipt, .. } = workers.intent(holder, intent(&held)).await.unwrap() else {
            panic!("its holder may")
        };
        is_not_its_own(workers.outcome(other, outcome(&held, receipt, false)).await);
        workers.outcome(holder, outcome(&held, receipt, true)).await.unwrap();
        is_not_its_own(workers.complete(other, report(&held, done("1"))).await);
        workers.complete(holder, report(&held, done("1"))).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        is_not_its_own(workers.complete(other, report(&held, done("1"))).await);
        assert!(!workers.complete(holder, report(&held, done("1"))).await.unwrap().recorded, "it says so once more");
        stop(engine).await;
    }

    // What is in doubt is settled by the worker that had it, or by a person.
    async fn nobody_speaks_for_what_another_worker_had(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let (holder, other) = (names(&engine).await, names(&engine).await);
        let mut step = StepSpec::task("pay", "pay");
        step.effect = Some(EffectClass::Unsafe);
        engine.runs().start(start(tenant, &plan(vec![step]), "null")).await.unwrap();
        let held = engine.workers().poll(holder, 1, PATIENCE).await.unwrap().remove(0);
        let workers = engine.workers();
        let EffectAnswer::Perform { receipt, .. } = workers.intent(holder, intent(&held)).await.unwrap() else {
            panic!("it is to be performed")
        };
        workers.unregister(holder).await.unwrap();
        is_not_its_own(workers.outcome(other, outcome(&held, receipt, false)).await);
        workers.outcome(holder, outcome(&held, receipt, true)).await.unwrap();
        stop(engine).await;
    }
}
