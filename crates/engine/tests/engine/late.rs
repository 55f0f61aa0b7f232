//! Late reports: refused, counted, and told in the audit log.

use interlock_core::ids::SessionId;
use interlock_core::json::Json;
use interlock_core::plan::retry::{Backoff, ErrorClass, RetryPolicy, StepError};
use interlock_core::plan::{Gate, OnDenial, OnFailure, StepSpec, Work};
use interlock_core::rejection::Rejection;
use interlock_core::run::Phase;
use interlock_core::run::approval::Voter;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectIntent, Report, ReportedOutcome};
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::{Engine, EngineError, EngineOptions};
use serde_json::{Value, json};

use crate::audit::{caught_up, key};
use crate::harness::{
    Database, PATIENCE, done, ends, engine_with, hello, plan, reaches, report, short_leases, start, stop, tenant, work,
};
use crate::on_both;

/// A gate for anybody who may approve.
fn gate() -> Gate {
    Gate {
        approvers: Vec::new(),
        quorum: 1,
        message: None,
        on_reject: OnDenial::Pause,
        on_expiry: OnDenial::Pause,
        escalate_after: None,
        expires_after: None,
    }
}

/// The session's report of this attempt: whether it was recorded.
pub async fn reports(
    engine: &Engine,
    session: SessionId,
    of: &Assignment,
    outcome: ReportedOutcome,
) -> Result<bool, EngineError> {
    let (at, epoch) = (of.at, of.epoch);
    let report = Report { at, epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() };
    engine.workers().complete(session, report).await.map(|completed| completed.recorded)
}

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

    async fn a_step_that_is_given_back_too_late_is_noted_if_an_effect_of_it_had_begun(database: &Database) {
        let engine = engine_with(database, EngineOptions { audit_key: Some(key()), ..short_leases() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        for (begins, noted) in [(false, 0), (true, 1)] {
            let mut step = StepSpec::task("pay", "pay");
            step.effect = Some(EffectClass::Unsafe);
            step.retry = Some(RetryPolicy { max_attempts: 1, backoff: Backoff::Fixed { delay: Millis(0) } });
            step.on_failure = Some(OnFailure::Pause);
            let run = engine.runs().start(start(tenant, &plan(vec![step]), "null")).await.unwrap().run;
            // A worker that stands still, and stops what it was doing when it goes on.
            let frozen = engine.workers().register(hello(1)).await.unwrap().session;
            let claimed = engine.workers().poll(frozen, 1, PATIENCE).await.unwrap().pop().unwrap();
            if begins {
                let (at, epoch, effect) = (claimed.at, claimed.epoch, EffectClass::Unsafe);
                let intent = EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() };
                engine.workers().intent(frozen, intent).await.unwrap();
            }
            reaches(&engine, tenant, run, RunState::Paused).await;
            let answer = reports(&engine, frozen, &claimed, ReportedOutcome::Released).await;
            assert!(matches!(answer, Err(EngineError::Rejected(Rejection::StaleAttempt { .. }))), "{answer:?}");
            assert_eq!(engine.health().counters().late_reports(), noted, "{begins}");
        }
        caught_up(&engine, tenant).await;
        let filter = AuditFilter { kind: Some("report.late".into()), ..AuditFilter::default() };
        let query = AuditQuery { number: None, newest_first: true, from: None, limit: 10, filter };
        let found = engine.audit().entries(tenant, &query).await.unwrap().entries;
        let details = found[0].opened.as_ref().unwrap().details.as_deref().unwrap();
        let details: Value = serde_json::from_str(details).unwrap();
        assert_eq!((found.len(), &details["result"]), (1, &json!("released")));
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
        let reported = async |of: &Assignment, outcome: ReportedOutcome| reports(&engine, session, of, outcome).await.unwrap();
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

    async fn a_late_report_is_refused_while_people_are_asked_to_run_its_step_again(database: &Database) {
        let engine = engine_with(database, EngineOptions { audit_key: Some(key()), ..short_leases() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut pay = StepSpec::task("pay", "pay");
        (pay.effect, pay.timeout) = (Some(EffectClass::Keyed), Some(Millis(200)));
        pay.retry = Some(RetryPolicy { max_attempts: 1, backoff: Backoff::Fixed { delay: Millis(0) } });
        pay.on_failure = Some(OnFailure::Pause);
        let plan = plan(vec![StepSpec::new("ok", Work::Approval(gate())), pay]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let found = engine.store().load_runs(&[(tenant, run)]).await.unwrap().remove(0);
        let Phase::WaitingApproval(asked) = &found.current().phase else { panic!("{:?}", found.current()) };
        let (approval, voter) = (asked.id, Voter::new("rob", Vec::new()));
        let vote = VoteRequest { approval, voter, approve: true, notes: None };
        engine.runs().vote(tenant, run, vote).await.unwrap();
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        // Its time is over, and the worker goes on; an operator has the step run again, and the gate's people are asked.
        reaches(&engine, tenant, run, RunState::Paused).await;
        engine.runs().retry(tenant, run, None, Context::operator("olga")).await.unwrap();
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;

        for _ in 0..2 {
            let answer = reports(&engine, session, &claimed, done("1")).await;
            assert!(matches!(answer, Err(EngineError::Rejected(Rejection::StaleAttempt { .. }))), "{answer:?}");
        }
        assert_eq!(engine.health().counters().late_reports(), 2);
        caught_up(&engine, tenant).await;
        let filter = AuditFilter { kind: Some("report.late".into()), ..AuditFilter::default() };
        let query = AuditQuery { number: None, newest_first: true, from: None, limit: 10, filter };
        let found = engine.audit().entries(tenant, &query).await.unwrap().entries;
        assert_eq!(found.len(), 1, "people are told before they let it run again");
        stop(engine).await;
    }

    async fn a_report_of_a_failure_that_comes_again_is_not_late_and_another_one_is(database: &Database) {
        let engine = crate::harness::engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut step = StepSpec::task("a", "a");
        step.on_failure = Some(OnFailure::Pause);
        let plan = plan(vec![step]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().unwrap();
        let dead = || ReportedOutcome::Dead { error: StepError::new(ErrorClass::Terminal, "NO", "no") };
        assert!(reports(&engine, session, &claimed, dead()).await.unwrap());
        reaches(&engine, tenant, run, RunState::Paused).await;
        assert!(!reports(&engine, session, &claimed, dead()).await.unwrap(), "the step has failed by this very report");
        assert_eq!(engine.health().counters().late_reports(), 0);
        let other = reports(&engine, session, &claimed, done("1")).await;
        assert!(matches!(other, Err(EngineError::Rejected(Rejection::ReportedOtherwise { .. }))), "{other:?}");
        assert_eq!(engine.health().counters().late_reports(), 1);
        stop(engine).await;
    }
}
