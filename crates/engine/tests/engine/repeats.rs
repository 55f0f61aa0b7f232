//! A report that comes twice is one; another report of the same attempt, or another outcome of the same effect, is refused, and
//! people are told.

use interlock_core::ids::{ReceiptId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::StepSpec;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome, ReportedOutcome, WorkerHello};
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use interlock_engine::commands::control::ResolveRequest;
use interlock_engine::{Engine, EngineError, EngineOptions};
use serde_json::{Value, json};

use crate::audit::{caught_up, key};
use crate::harness::{
    Database, PATIENCE, done, ends, engine, engine_with, hello, options, plan, reaches, start, stop, tenant,
};
use crate::late::reports;
use crate::on_both;
use crate::payloads::{Folder, long};

/// Which report of the attempt is recorded instead of this one.
async fn otherwise(engine: &Engine, session: SessionId, of: &Assignment, outcome: ReportedOutcome) -> &'static str {
    match reports(engine, session, of, outcome.clone()).await {
        Err(EngineError::Rejected(Rejection::ReportedOtherwise { recorded, .. })) => recorded,
        answer => panic!("{outcome:?}: {answer:?}"),
    }
}

async fn next(engine: &Engine, session: SessionId) -> Assignment {
    engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().expect("work")
}

fn error(code: &str) -> StepError {
    StepError::new(ErrorClass::Unavailable, code, "come back")
}

fn dead(code: &str) -> ReportedOutcome {
    ReportedOutcome::Dead { error: error(code) }
}

fn retry(code: &str) -> ReportedOutcome {
    ReportedOutcome::Retry { error: error(code), backoff: Some(Millis::from_mins(10)) }
}

fn waiting(signal: &str, key: Option<&str>, timeout: Option<Millis>) -> ReportedOutcome {
    ReportedOutcome::Waiting { signal: signal.into(), key: key.map(str::to_owned), timeout, outbound: Vec::new() }
}

fn unsafe_step() -> StepSpec {
    StepSpec { effect: Some(EffectClass::Unsafe), ..StepSpec::task("pay", "pay") }
}

fn text(text: &str) -> Json {
    Json::parse(text, 1 << 20).unwrap()
}

/// The receipt of an effect that the attempt may perform.
async fn performs(engine: &Engine, session: SessionId, of: &Assignment) -> ReceiptId {
    let (at, epoch, effect) = (of.at, of.epoch, EffectClass::Unsafe);
    let intent = EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() };
    match engine.workers().intent(session, intent).await.unwrap() {
        EffectAnswer::Perform { receipt, .. } => receipt,
        answer => panic!("{answer:?}"),
    }
}

/// What the audit log has about late reports.
async fn told(engine: &Engine, tenant: TenantId) -> Vec<Value> {
    caught_up(engine, tenant).await;
    let filter = AuditFilter { kind: Some("report.late".into()), ..AuditFilter::default() };
    let query = AuditQuery { number: None, newest_first: false, from: None, limit: 10, filter };
    let found = engine.audit().entries(tenant, &query).await.unwrap().entries;
    let details = found.iter().map(|entry| entry.opened.as_ref().unwrap().details.as_deref().unwrap());
    details.map(|details| serde_json::from_str(details).unwrap()).collect()
}

on_both! {
    async fn another_report_than_the_first_is_refused_and_told(database: &Database) {
        let engine = engine_with(database, EngineOptions { audit_key: Some(key()), ..options() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let steps = plan(vec![StepSpec::task("a", "a"), StepSpec::task("b", "b")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let first = next(&engine, session).await;
        assert!(reports(&engine, session, &first, done(r#"{"a":1,"b":2}"#)).await.unwrap());
        for has_ended in [false, true] {
            if has_ended {
                let second = next(&engine, session).await;
                assert!(reports(&engine, session, &second, done("1")).await.unwrap());
                assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
            }
            for same in [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#] {
                assert!(!reports(&engine, session, &first, done(same)).await.unwrap(), "{same} is no other output");
            }
            // One that is as long, and others that say that the step was not done.
            for other in [done(r#"{"a":1,"b":3}"#), dead("NO"), retry("BUSY"), waiting("go", None, None)] {
                assert_eq!(otherwise(&engine, session, &first, other).await, "completed");
            }
            assert_eq!(otherwise(&engine, session, &first, ReportedOutcome::Released).await, "completed");
        }
        let kept = engine.store().steps(tenant, run).await.unwrap();
        assert_eq!(kept[0].output, Some(text(r#"{"a":1,"b":2}"#)));
        assert_eq!(engine.health().counters().late_reports(), 8, "giving back what was done is no result");
        let told = told(&engine, tenant).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!((&told[0]["attempt"], &told[0]["recorded"]), (&json!(1), &json!("completed")));
        assert_eq!(told[0]["refused"], json!("STEP_STALE_ATTEMPT"));
        stop(engine).await;
    }

    async fn a_long_output_is_compared_by_its_hash(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let steps = plan(vec![StepSpec::task("a", "a")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = next(&engine, session).await;
        assert!(reports(&engine, session, &claimed, done(&long("o"))).await.unwrap());
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert!(!reports(&engine, session, &claimed, done(&long("o"))).await.unwrap());
        assert_eq!(otherwise(&engine, session, &claimed, done(&long("p"))).await, "completed");
        stop(engine).await;
    }

    async fn a_wait_is_the_same_with_its_signal_its_key_and_its_end(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let run = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = next(&engine, session).await;
        let (soon, later) = (Some(Millis::from_mins(5)), Some(Millis::from_mins(6)));
        assert!(reports(&engine, session, &claimed, waiting("go", None, soon)).await.unwrap());
        let own_key = run.to_string();
        for key in [None, Some(own_key.as_str())] {
            assert!(!reports(&engine, session, &claimed, waiting("go", key, soon)).await.unwrap(), "{key:?}");
        }
        for other in [
            waiting("stop", None, soon),
            waiting("go", Some("another"), soon),
            waiting("go", None, later),
            waiting("go", None, None),
            done("1"),
            retry("BUSY"),
        ] {
            assert_eq!(otherwise(&engine, session, &claimed, other).await, "waiting");
        }
        stop(engine).await;
    }

    async fn a_failure_is_the_same_with_its_code_and_its_words(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "null")).await.unwrap();
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = next(&engine, session).await;
        assert!(reports(&engine, session, &claimed, retry("BUSY")).await.unwrap());
        assert!(!reports(&engine, session, &claimed, retry("BUSY")).await.unwrap());
        let worded = StepError { message: "stay away".into(), ..error("BUSY") };
        for other in [
            retry("GONE"),
            ReportedOutcome::Retry { error: worded, backoff: None },
            dead("BUSY"),
            ReportedOutcome::UnknownTask,
            done("1"),
        ] {
            assert_eq!(otherwise(&engine, session, &claimed, other).await, "failed");
        }
        stop(engine).await;
    }

    async fn a_step_may_be_given_back_twice_and_was_not_done_then(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "null")).await.unwrap();
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let claimed = next(&engine, session).await;
        assert!(reports(&engine, session, &claimed, ReportedOutcome::Released).await.unwrap());
        assert!(!reports(&engine, session, &claimed, ReportedOutcome::Released).await.unwrap());
        let late = reports(&engine, session, &claimed, done("1")).await;
        assert!(matches!(late, Err(EngineError::Rejected(Rejection::StaleAttempt { .. }))), "{late:?}");
        stop(engine).await;
    }

    // That it was done after all is the best evidence there is, and taken; whatever else is said now was not said first.
    async fn a_report_that_has_led_to_a_doubt_stands_and_may_be_followed_by_that_it_was_done(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plain = WorkerHello { tenant: Some(tenant), capabilities: None, ..hello(1) };
        let session = engine.workers().register(plain).await.unwrap().session;
        let run = engine.runs().start(start(tenant, &plan(vec![unsafe_step()]), "null")).await.unwrap().run;
        let claimed = next(&engine, session).await;
        assert!(reports(&engine, session, &claimed, dead("NO")).await.unwrap());
        reaches(&engine, tenant, run, RunState::Paused).await;
        assert!(!reports(&engine, session, &claimed, dead("NO")).await.unwrap());
        assert_eq!(otherwise(&engine, session, &claimed, dead("NEVER")).await, "failed");
        assert!(reports(&engine, session, &claimed, done("1")).await.unwrap());
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert!(!reports(&engine, session, &claimed, done("1")).await.unwrap());
        assert!(!reports(&engine, session, &claimed, dead("NO")).await.unwrap(), "it was recorded first");
        assert_eq!(otherwise(&engine, session, &claimed, done("2")).await, "completed");
        stop(engine).await;
    }

    async fn what_a_person_has_said_of_a_doubt_is_no_report_of_its_worker(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let run = engine.runs().start(start(tenant, &plan(vec![unsafe_step()]), "null")).await.unwrap().run;
        let claimed = next(&engine, session).await;
        performs(&engine, session, &claimed).await;
        assert!(reports(&engine, session, &claimed, dead("NO")).await.unwrap());
        reaches(&engine, tenant, run, RunState::Paused).await;
        let (step, reason) = ("pay".to_owned(), "looked it up".to_owned());
        let request = ResolveRequest { step, resolution: Resolution::Happened, output: Some(text("1")), reason };
        engine.runs().resolve(tenant, run, request, Context::operator("olga")).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert!(!reports(&engine, session, &claimed, dead("NO")).await.unwrap(), "it has led to the doubt");
        assert_eq!(otherwise(&engine, session, &claimed, dead("NEVER")).await, "failed");
        let late = reports(&engine, session, &claimed, done("1")).await;
        assert!(late.is_err(), "its worker has never said so: {late:?}");
        stop(engine).await;
    }

    async fn another_outcome_of_an_effect_is_refused_and_told(database: &Database) {
        let engine = engine_with(database, EngineOptions { audit_key: Some(key()), ..options() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let run = engine.runs().start(start(tenant, &plan(vec![unsafe_step()]), "null")).await.unwrap().run;
        let claimed = next(&engine, session).await;
        let receipt = performs(&engine, session, &claimed).await;
        let tells = async |happened: bool, response: Option<&str>| {
            let (at, epoch, response) = (claimed.at, claimed.epoch, response.map(text));
            engine.workers().outcome(session, EffectOutcome { at, epoch, receipt, happened, response }).await
        };
        for same in [r#"{"id":7}"#, r#"{"id":7}"#, r#"{ "id": 7 }"#] {
            tells(true, Some(same)).await.unwrap();
        }
        for other in [Some(r#"{"id":8}"#), None] {
            let refused = tells(true, other).await;
            let differs = matches!(refused, Err(EngineError::Rejected(Rejection::OutcomeRecorded { .. })));
            assert!(differs, "{refused:?}");
        }
        let opposite = tells(false, None).await;
        assert!(matches!(opposite, Err(EngineError::Rejected(Rejection::EffectRecorded { .. }))), "{opposite:?}");
        let kept = engine.store().receipts(tenant, run).await.unwrap().remove(0).receipt;
        assert_eq!(kept.response, Some(text(r#"{"id":7}"#)), "the first outcome stands");
        assert!(reports(&engine, session, &claimed, done("1")).await.unwrap(), "the attempt goes on");
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(engine.health().counters().late_reports(), 3);
        let told = told(&engine, tenant).await;
        assert_eq!(told.len(), 1, "once for an effect: {told:?}");
        assert_eq!((&told[0]["receipt"], &told[0]["recorded"]), (&json!(receipt.to_string()), &json!("succeeded")));
        assert_eq!(told[0]["result"], json!("effect_happened"));
        stop(engine).await;
    }
}
