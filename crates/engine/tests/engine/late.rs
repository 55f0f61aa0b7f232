//! Late reports: refused, counted, and told in the audit log.

use interlock_core::plan::StepSpec;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, Report, ReportedOutcome};
use interlock_engine::EngineOptions;
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use serde_json::{Value, json};

use crate::audit::{caught_up, key};
use crate::harness::{
    Database, PATIENCE, done, ends, engine_with, hello, plan, report, short_leases, start, stop, tenant, work,
};
use crate::on_both;

on_both! {
    async fn a_late_report_is_counted_and_in_the_audit_log_once(database: &Database) {
        let engine = engine_with(database, EngineOptions { audit_key: Some(key()), ..short_leases() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        // A worker that claims, and is heard of again when another one has done the step.
        let lost = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = engine.workers().poll(lost, 1, PATIENCE).await.unwrap().pop().unwrap();
        work(&engine, 1, |_| async { done("2") });
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        for _ in 0..2 {
            assert_eq!(report(&engine, lost, &claimed, done("1")).await, None);
        }
        let steps = engine.store().steps(tenant, run).await.unwrap();
        assert_eq!(steps[0].output.as_ref().unwrap().as_str(), "2", "what it says changes nothing");
        assert_eq!(engine.health().counters().late_reports(), 2);

        caught_up(&engine, tenant).await;
        let filter = AuditFilter { kind: Some("report.late".into()), ..AuditFilter::default() };
        let query = AuditQuery { number: None, newest_first: true, from: None, limit: 10, filter };
        let found = engine.audit().entries(tenant, &query).await.unwrap().entries;
        assert_eq!(found.len(), 1, "a repeat is not noted again");
        assert_eq!(found[0].entry.body.subject, Some(run.to_string()));
        let details = found[0].opened.as_ref().unwrap().details.as_deref().unwrap();
        let details: Value = serde_json::from_str(details).unwrap();
        assert_eq!((&details["attempt"], &details["result"]), (&json!(1), &json!("completed")), "{details}");
        stop(engine).await;
    }

    async fn a_report_that_comes_again_is_not_late(database: &Database) {
        let engine = crate::harness::engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "a")]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let first = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        let error = StepError::new(ErrorClass::Unavailable, "BUSY", "come back");
        let retry = ReportedOutcome::Retry { error, backoff: Some(Millis(0)) };
        let reported = |of: &Assignment, outcome: ReportedOutcome| {
            let (at, epoch) = (of.at, of.epoch);
            let report = Report { at, epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() };
            let workers = engine.workers();
            async move { workers.complete(session, report).await.unwrap().recorded }
        };
        assert!(reported(&first, retry.clone()).await);
        let second = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        assert_eq!(second.at.attempt, 2);
        // The answer was lost, and the worker says it again: while the next attempt runs, and after the end.
        assert!(!reported(&first, retry.clone()).await, "nothing is recorded twice");
        assert!(reported(&second, done("2")).await);
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert!(!reported(&first, retry).await);
        assert_eq!(engine.health().counters().late_reports(), 0);
        // What it has not said before is no repeat.
        assert_eq!(report(&engine, session, &first, done("1")).await, None);
        assert_eq!(engine.health().counters().late_reports(), 1);
        stop(engine).await;
    }
}
