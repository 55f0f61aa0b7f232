//! Decisions on actions: what is denied does not happen, and what people must agree to waits for them, on both
//! databases and over a restart.

use std::sync::Arc;

use interlock_core::governance::action::Action;
use interlock_core::governance::judge::{Decision, Judge, Ruling};
use interlock_core::ids::SessionId;
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{Gate, StepSpec};
use interlock_core::run::Run;
use interlock_core::run::approval::Voter;
use interlock_core::state::{EffectClass, Reason, RunState};
use interlock_core::time::Millis;
use interlock_core::work::{Assignment, EffectAnswer, EffectIntent, EffectOutcome, ReportedOutcome};
use interlock_engine::commands::vote::VoteRequest;
use interlock_engine::{Engine, EngineOptions, JudgedBy};

use crate::harness::{
    Database, PATIENCE, done, ends, engine_with, hello, options, plan, reaches, report, start, stop, tenant,
};
use crate::on_both;

/// Decides by what an action is called.
#[derive(Debug)]
struct ByName;

impl Judge for ByName {
    fn judge(&self, action: &Action, _: &Run) -> Ruling {
        let reasons = vec!["it is called so".to_owned()];
        match action.operation.as_str() {
            "forbidden" => Decision::Deny { reasons }.into(),
            "ask-first" => {
                let gate: Gate = serde_json::from_str("{}").unwrap();
                Decision::NeedsApproval { reasons, terms: Box::new(gate.into()) }.into()
            }
            _ => Decision::Allow.into(),
        }
    }
}

/// Forbids effects on more than ten.
#[derive(Debug)]
struct UpToTen;

impl Judge for UpToTen {
    fn judge(&self, action: &Action, _: &Run) -> Ruling {
        let amount = action.input.to_value().ok().and_then(|input| input["amount"].as_u64());
        match amount {
            Some(11..) => Decision::Deny { reasons: vec!["it is more than ten".to_owned()] }.into(),
            _ => Decision::Allow.into(),
        }
    }
}

async fn judged(database: &Database) -> Engine {
    Box::pin(engine_with(database, EngineOptions { judge: JudgedBy::Judge(Arc::new(ByName)), ..options() })).await
}

async fn next(engine: &Engine, session: SessionId) -> Assignment {
    engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0)
}

fn intent(assignment: &Assignment, template: &str, request: &str) -> EffectIntent {
    let (at, epoch) = (assignment.at, assignment.epoch);
    let request = Json::trusted(request.to_owned());
    EffectIntent { at, epoch, template: template.into(), number: 0, effect: EffectClass::Unsafe, request }
}

on_both! {
    async fn a_step_that_is_denied_never_begins(database: &Database) {
        let engine = judged(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("a", "forbidden")]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
        let row = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
        assert_eq!(row.reason, Some(Reason::PolicyDenied));
        stop(engine).await;
    }

    async fn leave_for_an_effect_is_for_what_was_asked_and_is_asked_for_by_each_attempt(database: &Database) {
        let engine = engine_with(database, EngineOptions { judge: JudgedBy::Judge(Arc::new(UpToTen)), ..options() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let keyed = |assignment: &Assignment, amount: u32| {
            let request = format!("{{\"amount\":{amount}}}");
            EffectIntent { effect: EffectClass::Keyed, ..intent(assignment, "pay", &request) }
        };
        for (amount, denied) in [(2, false), (777, true)] {
            let mut pay = StepSpec::task("pay", "pay");
            pay.effect = Some(EffectClass::Keyed);
            let run = engine.runs().start(start(tenant, &plan(vec![pay]), "null")).await.unwrap().run;
            let first = next(&engine, session).await;
            for _ in 0..2 {
                let answer = engine.workers().intent(session, keyed(&first, 1)).await.unwrap();
                assert!(matches!(answer, EffectAnswer::Perform { .. }), "the same question has the same answer: {answer:?}");
            }
            let other = engine.workers().intent(session, keyed(&first, 999_999)).await;
            assert!(other.is_err(), "leave was given for another request: {other:?}");
            let error = StepError::new(ErrorClass::Unavailable, "LOST", "no answer");
            report(&engine, session, &first, ReportedOutcome::Retry { error, backoff: Some(Millis(1)) }).await;
            let second = next(&engine, session).await;
            let answer = engine.workers().intent(session, keyed(&second, amount)).await.unwrap();
            assert_eq!(matches!(answer, EffectAnswer::Denied { .. }), denied, "{answer:?}");
            let kept = engine.store().receipts(tenant, run).await.unwrap().remove(0).receipt.request;
            let asked = if denied { 1 } else { amount };
            assert_eq!(kept.to_value().unwrap()["amount"], asked, "a receipt tells what leave was given for");
            if denied {
                assert_eq!(ends(&engine, tenant, run).await, RunState::Failed);
            } else {
                report(&engine, session, &second, done("1")).await;
            }
        }
        stop(engine).await;
    }

    async fn a_rollback_that_is_denied_stops_the_run_for_an_operator(database: &Database) {
        let engine = judged(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let mut first = StepSpec::task("a", "a");
        first.rollback = serde_json::from_str(r#"{"handler":"forbidden"}"#).unwrap();
        let plan = plan(vec![first, StepSpec::task("b", "forbidden")]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let assignment = next(&engine, session).await;
        report(&engine, session, &assignment, done("1")).await;
        reaches(&engine, tenant, run, RunState::Paused).await;
        stop(engine).await;
    }

    async fn an_effect_waits_for_people_over_a_restart_and_is_permitted_once(database: &Database) {
        let engine = judged(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let plan = plan(vec![StepSpec::task("pay", "pay")]);
        let run = engine.runs().start(start(tenant, &plan, "null")).await.unwrap().run;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let first = next(&engine, session).await;
        let asked = intent(&first, "ask-first", "{\"to\":1}");
        let answer = engine.workers().intent(session, asked.clone()).await.unwrap();
        assert!(matches!(&answer, EffectAnswer::NeedsApproval { reasons } if reasons.len() == 1), "{answer:?}");
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;
        assert!(engine.workers().intent(session, asked).await.is_err(), "its attempt is over");
        stop(engine).await;

        let engine = judged(database).await;
        let approval = engine.store().approvals_of(tenant, run).await.unwrap().remove(0);
        let voter = Voter::new("bob", vec![]);
        let vote = VoteRequest { approval: approval.id, voter, approve: true, notes: None };
        engine.runs().vote(tenant, run, vote).await.unwrap();
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let second = next(&engine, session).await;
        let EffectAnswer::Perform { receipt, .. } =
            engine.workers().intent(session, intent(&second, "ask-first", "{\"to\":1}")).await.unwrap()
        else {
            panic!("people have agreed to it")
        };
        let (at, epoch) = (second.at, second.epoch);
        engine.workers().outcome(session, EffectOutcome { at, epoch, receipt, happened: true, response: None }).await.unwrap();
        // Another one is another question, whatever was agreed to before.
        let mut other = intent(&second, "ask-first", "{\"to\":2}");
        other.number = 1;
        let answer = engine.workers().intent(session, other).await.unwrap();
        assert!(matches!(answer, EffectAnswer::NeedsApproval { .. }), "{answer:?}");
        stop(engine).await;
    }
}
