//! Rows of another tenant do not exist for a caller, on both databases.

use crate::harness::{Database, PATIENCE, done, engine, hello, plan, start, stop, tenant};
use crate::on_both;
use interlock_core::ids::{SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::StepSpec;
use interlock_core::rejection::Rejection;
use interlock_core::state::EffectClass;
use interlock_core::time::Timestamp;
use interlock_core::work::{EffectAnswer, EffectIntent, EffectOutcome, Report, WorkerHello};
use interlock_engine::EngineError;
use interlock_engine::commands::signal::SignalRequest;
use interlock_store::SourceId;

on_both! {
    async fn a_session_speaks_only_for_its_own_tenant(database: &Database) {
        let engine = engine(database).await;
        let (ours, theirs) = (tenant(&engine, |_| {}).await, tenant(&engine, |_| {}).await);
        let of = |tenant| WorkerHello { tenant: Some(tenant), ..hello(4) };
        let own = engine.workers().register(of(ours)).await.unwrap().session;
        let other = engine.workers().register(of(theirs)).await.unwrap().session;
        let run = engine.runs().start(start(ours, &plan(vec![StepSpec::task("a", "a")]), "{}")).await.unwrap().run;
        let assignment = engine.workers().poll(own, 1, PATIENCE).await.unwrap().pop().unwrap();
        let (at, epoch) = (assignment.at, assignment.epoch);
        let intent = || EffectIntent {
            at, epoch, template: "pay".into(), number: 0, effect: EffectClass::Keyed, request: Json::null(),
        };
        let report = || Report { at, epoch, outcome: done("1"), claim_next: false, cost: None, credentials: Vec::new() };
        let absent = |answer: Option<EngineError>| {
            assert!(
                matches!(answer, Some(EngineError::Rejected(Rejection::UnknownRun { run: id })) if id == run),
                "{answer:?}"
            );
        };
        absent(engine.workers().intent(other, intent()).await.err());
        let EffectAnswer::Perform { receipt, .. } = engine.workers().intent(own, intent()).await.unwrap() else { panic!() };
        let outcome = || EffectOutcome { at, epoch, receipt, happened: true, response: None };
        absent(engine.workers().outcome(other, outcome()).await.err());
        absent(engine.workers().complete(other, report()).await.err());
        let unknown = SessionId(engine.fresh_id());
        assert!(matches!(engine.workers().complete(unknown, report()).await, Err(EngineError::SessionGone)));
        engine.workers().outcome(own, outcome()).await.unwrap();
        assert!(engine.workers().complete(own, report()).await.unwrap().recorded);
        stop(engine).await;
    }

    async fn a_signal_for_nobodys_tenant_is_refused(database: &Database) {
        let engine = engine(database).await;
        let tenant = TenantId(engine.fresh_id());
        let payload = Json::null();
        let signal =
            SignalRequest { tenant, signal_type: "go".into(), key: "k".into(), payload, source_id: Some(SourceId::of_tenant("1")), broadcast: false, run: None };
        for _ in 0..2 {
            let answer = engine.signals().signal(signal.clone()).await;
            assert!(
                matches!(answer, Err(EngineError::Rejected(Rejection::UnknownTenant { .. }))),
                "{answer:?}"
            );
        }
        assert!(engine.store().pending_signals(tenant, "go", "k", Timestamp(0), 10).await.unwrap().is_empty());
        stop(engine).await;
    }
}
