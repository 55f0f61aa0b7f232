//! Effects whose run ends, or is continued by another, before it is known what became of them.

use interlock_core::ids::{ReceiptId, RunId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::StepSpec;
use interlock_core::plan::retry::{Backoff, ErrorClass, RetryPolicy, StepError};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, ReceiptState, RunState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome, Report, ReportedOutcome};
use interlock_engine::commands::control::ResolveRequest;
use interlock_engine::{Engine, EngineError};

use crate::harness::{Database, PATIENCE, done, ends, engine, hello, plan, reaches, start, stop, tenant};
use crate::on_both;

on_both! {
    async fn a_late_outcome_reaches_the_receipt_of_a_canceled_run(database: &Database) {
        let engine = engine(database).await;
        let (tenant, run, session, assignment, receipt) = canceled_in_doubt(&engine).await;
        let (at, epoch) = (assignment.at, assignment.epoch);
        let outcome = EffectOutcome { at, epoch, receipt, happened: true, response: Some(json("7")) };
        for _ in 0..2 {
            engine.workers().outcome(session, outcome.clone()).await.unwrap();
        }
        let receipts = engine.store().receipts(tenant, run).await.unwrap();
        let kept = &receipts[0].receipt;
        assert_eq!((kept.state, kept.late, kept.response.as_ref()), (ReceiptState::Succeeded, true, Some(&json("7"))));
        assert_answered_in_a_new_run(&engine, tenant, run).await;
        stop(engine).await;
    }

    async fn a_person_settles_what_a_canceled_run_left_in_doubt(database: &Database) {
        let engine = engine(database).await;
        let (tenant, run, ..) = canceled_in_doubt(&engine).await;
        let runs = engine.runs();
        let resolve = |resolution, output| {
            let request = ResolveRequest { step: "pay".into(), resolution, output, reason: "looked it up".into() };
            runs.resolve(tenant, run, request, Context::operator("olga"))
        };
        let early = resolve(Resolution::DidNotHappen, None).await;
        assert!(matches!(early, Err(EngineError::Rejected(Rejection::EffectUnderWay { .. }))), "{early:?}");
        resolve(Resolution::Happened, Some(json("7"))).await.unwrap();
        let again = resolve(Resolution::Happened, None).await;
        assert!(matches!(again, Err(EngineError::Rejected(Rejection::Terminal { .. }))), "{again:?}");
        assert_answered_in_a_new_run(&engine, tenant, run).await;
        stop(engine).await;
    }

    async fn a_resumed_run_records_the_effect_that_the_old_one_left_open(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut pay = StepSpec::task("pay", "pay");
        pay.effect = Some(EffectClass::Keyed);
        let run = engine.runs().start(start(tenant, &plan(vec![pay]), "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let first = next(&engine, session).await;
        let EffectAnswer::Perform { key, .. } = ask(&engine, session, &first, EffectClass::Keyed).await else { panic!() };
        let error = StepError::new(ErrorClass::Terminal, "NO", "gone");
        report(&engine, session, &first, ReportedOutcome::Dead { error }).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);

        let resumed = engine.runs().resume_as_new(tenant, run, None, None, Context::operator("olga")).await.unwrap().run;
        let second = next(&engine, session).await;
        let EffectAnswer::Perform { receipt, key: same } = ask(&engine, session, &second, EffectClass::Keyed).await else {
            panic!("it may be performed again under its key")
        };
        assert_eq!(key, same);
        let (at, epoch) = (second.at, second.epoch);
        engine.workers().outcome(session, EffectOutcome { at, epoch, receipt, happened: true, response: None }).await.unwrap();
        report(&engine, session, &second, done("1")).await;
        assert_eq!(ends(&engine, tenant, resumed).await, RunState::Succeeded);
        stop(engine).await;
    }

    async fn a_refused_retry_leaves_an_unanswered_effect_in_doubt(database: &Database) {
        let engine = engine(database).await;
        let (tenant, run, session) = keyed_and_retried(&engine).await;

        // Sent, and never answered.
        let first = next(&engine, session).await;
        let EffectAnswer::Perform { receipt, .. } = ask(&engine, session, &first, EffectClass::Keyed).await else { panic!() };
        report(&engine, session, &first, retry()).await;
        // Refused twice: that says nothing of the first.
        for _ in 0..2 {
            let later = next(&engine, session).await;
            let answer = ask(&engine, session, &later, EffectClass::Keyed).await;
            assert!(matches!(&answer, EffectAnswer::Perform { receipt: same, .. } if *same == receipt), "{answer:?}");
            let (at, epoch) = (later.at, later.epoch);
            let refused = EffectOutcome { at, epoch, receipt, happened: false, response: None };
            for _ in 0..2 {
                engine.workers().outcome(session, refused.clone()).await.unwrap();
            }
            let kept = engine.store().receipts(tenant, run).await.unwrap().remove(0).receipt;
            assert_eq!((kept.state, kept.unsettled, kept.outcome_at), (ReceiptState::InDoubt, true, None));
            report(&engine, session, &later, retry()).await;
        }
        assert!(engine.store().check().await.unwrap().is_empty());

        // Under the name of an unsafe effect it is not repeated.
        let unsafe_now = next(&engine, session).await;
        let intent = intent_of(&unsafe_now, EffectClass::Unsafe);
        let refused = engine.workers().intent(session, intent).await;
        assert!(matches!(refused, Err(EngineError::Rejected(Rejection::EffectRecorded { .. }))), "{refused:?}");
        let error = StepError::new(ErrorClass::Terminal, "NO", "gone");
        report(&engine, session, &unsafe_now, ReportedOutcome::Dead { error }).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);

        // A person says what became of it, and it is known then.
        let resolution = Resolution::Happened;
        let request = ResolveRequest { step: "pay".into(), resolution, output: Some(json("7")), reason: "looked".into() };
        engine.runs().resolve(tenant, run, request, Context::operator("olga")).await.unwrap();
        let kept = engine.store().receipts(tenant, run).await.unwrap().remove(0).receipt;
        assert_eq!((kept.state, kept.late), (ReceiptState::Succeeded, true));
        stop(engine).await;
    }

    async fn an_answer_of_a_retry_settles_the_tries_before_it(database: &Database) {
        let engine = engine(database).await;
        let (tenant, run, session) = keyed_and_retried(&engine).await;
        let first = next(&engine, session).await;
        ask(&engine, session, &first, EffectClass::Keyed).await;
        report(&engine, session, &first, retry()).await;
        let second = next(&engine, session).await;
        let EffectAnswer::Perform { receipt, .. } = ask(&engine, session, &second, EffectClass::Keyed).await else { panic!() };
        let (at, epoch) = (second.at, second.epoch);
        engine.workers().outcome(session, EffectOutcome { at, epoch, receipt, happened: true, response: None }).await.unwrap();
        let kept = engine.store().receipts(tenant, run).await.unwrap().remove(0).receipt;
        assert_eq!(kept.state, ReceiptState::Succeeded);
        assert!(kept.outcome_at.is_some());
        stop(engine).await;
    }
}

/// A run whose keyed effect is tried again at once, and a session for it.
async fn keyed_and_retried(engine: &Engine) -> (TenantId, RunId, SessionId) {
    let tenant = tenant(engine, |_| {}).await;
    let mut pay = StepSpec::task("pay", "pay");
    pay.effect = Some(EffectClass::Keyed);
    pay.retry = Some(RetryPolicy { max_attempts: 9, backoff: Backoff::Fixed { delay: Millis(10) } });
    let run = engine.runs().start(start(tenant, &plan(vec![pay]), "null")).await.unwrap().run;
    let session = engine.workers().register(hello(1)).await.unwrap().session;
    (tenant, run, session)
}

fn retry() -> ReportedOutcome {
    ReportedOutcome::Retry { error: StepError::new(ErrorClass::Timeout, "TIMEOUT", "no answer"), backoff: None }
}

/// A run whose worker was lost in the middle of an unsafe effect, and which was canceled then.
pub async fn canceled_in_doubt(engine: &Engine) -> (TenantId, RunId, SessionId, Assignment, ReceiptId) {
    let tenant = tenant(engine, |_| {}).await;
    let mut pay = StepSpec::task("pay", "pay");
    pay.effect = Some(EffectClass::Unsafe);
    let run = engine.runs().start(start(tenant, &plan(vec![pay]), "null")).await.unwrap().run;
    let session = engine.workers().register(hello(1)).await.unwrap().session;
    let assignment = next(engine, session).await;
    let EffectAnswer::Perform { receipt, .. } = ask(engine, session, &assignment, EffectClass::Unsafe).await else {
        panic!()
    };
    engine.workers().left_out(assignment.at).await.unwrap();
    reaches(engine, tenant, run, RunState::Paused).await;
    engine.runs().cancel(tenant, run, "no more".into(), false, Context::operator("olga")).await.unwrap();
    assert_eq!(ends(engine, tenant, run).await, RunState::Canceled);
    (tenant, run, session, assignment, receipt)
}

async fn assert_answered_in_a_new_run(engine: &Engine, tenant: TenantId, run: RunId) {
    engine.runs().resume_as_new(tenant, run, None, None, Context::operator("olga")).await.unwrap();
    let session = engine.workers().register(hello(1)).await.unwrap().session;
    let assignment = next(engine, session).await;
    let answer = ask(engine, session, &assignment, EffectClass::Unsafe).await;
    assert!(matches!(&answer, EffectAnswer::Performed { response: Some(_), .. }), "{answer:?}");
}

async fn ask(engine: &Engine, session: SessionId, assignment: &Assignment, effect: EffectClass) -> EffectAnswer {
    engine.workers().intent(session, intent_of(assignment, effect)).await.unwrap()
}

fn intent_of(assignment: &Assignment, effect: EffectClass) -> EffectIntent {
    let (at, epoch) = (assignment.at, assignment.epoch);
    EffectIntent { at, epoch, template: "bank".into(), number: 0, effect, request: Json::null() }
}

async fn report(engine: &Engine, session: SessionId, assignment: &Assignment, outcome: ReportedOutcome) {
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

async fn next(engine: &Engine, session: SessionId) -> Assignment {
    engine.workers().poll(session, 1, PATIENCE).await.unwrap().pop().expect("work")
}

fn json(text: &str) -> Json {
    Json::parse(text, 1 << 10).unwrap()
}
