//! `dedupe: tenant`: what one run has done within the window, another one does not do again.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{RunId, SessionId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{RollbackCondition, RollbackSpec, StepSpec, Undo};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_core::state::{EffectClass, RunState};
use interlock_core::work::{
    Assignment, EFFECTS, EffectAnswer, EffectIntent, EffectOutcome, Report, ReportedOutcome, WorkerHello,
};
use interlock_engine::{EncodedPlan, Engine, EngineError};
use serde_json::json;

use crate::harness::{Database, PATIENCE, done, ends, engine, hello, plan, start, stop, tenant};
use crate::on_both;

fn told_once(window: u64) -> Arc<EncodedPlan> {
    let rules = json!({ "idempotency": { "dedupe": "tenant", "window": window } });
    let step =
        json!({ "key": "say", "kind": "connector", "operation": "slack.post", "effect": "keyed", "rules": rules });
    let mut step: StepSpec = serde_json::from_value(step).unwrap();
    let conditions = RollbackCondition::ALL.to_vec();
    step.rollback = Some(RollbackSpec { conditions, ..RollbackSpec::by(Undo::Handler("unsay".into())) });
    plan(vec![step])
}

const HOUR: u64 = 3_600_000;

struct Teller {
    engine: Engine,
    tenant: TenantId,
    session: SessionId,
}

impl Teller {
    async fn new(database: &Database) -> Self {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let capabilities = Some(vec![EFFECTS.to_owned(), "connector".to_owned()]);
        let session = engine.workers().register(WorkerHello { capabilities, ..hello(9) }).await.unwrap().session;
        Self { engine, tenant, session }
    }

    async fn begins(&self, plan: &Arc<EncodedPlan>) -> (RunId, Assignment) {
        let run = self.engine.runs().start(start(self.tenant, plan, "null")).await.unwrap().run;
        let assignments = self.engine.workers().poll(self.session, 9, PATIENCE).await.unwrap();
        (run, assignments.into_iter().find(|assignment| assignment.at.run == run).expect("its step"))
    }

    async fn asks(&self, of: &Assignment, template: &str) -> Result<EffectAnswer, EngineError> {
        let (at, epoch, effect) = (of.at, of.epoch, EffectClass::Keyed);
        let intent = EffectIntent { at, epoch, template: template.into(), number: 0, effect, request: Json::null() };
        self.engine.workers().intent(self.session, intent).await
    }

    async fn performs(&self, of: &Assignment, template: &str, happened: bool) {
        let EffectAnswer::Perform { receipt, .. } = self.asks(of, template).await.unwrap() else {
            panic!("it is to be performed")
        };
        let (at, epoch, response) = (of.at, of.epoch, happened.then(|| Json::parse("7", 9).unwrap()));
        let outcome = EffectOutcome { at, epoch, receipt, happened, response };
        self.engine.workers().outcome(self.session, outcome).await.unwrap();
    }

    async fn reports(&self, of: &Assignment, outcome: ReportedOutcome) {
        let (at, epoch) = (of.at, of.epoch);
        let report = Report { at, epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() };
        self.engine.workers().complete(self.session, report).await.unwrap();
    }

    async fn told(&self, run: RunId) -> Vec<String> {
        let events = self.engine.store().events(self.tenant, run, 0, 100).await.unwrap();
        events.into_iter().map(|event| event.event.to_value().unwrap()["event"].as_str().unwrap().to_owned()).collect()
    }
}

fn is_elsewhere(answer: &Result<EffectAnswer, EngineError>, whose: RunId) -> bool {
    matches!(answer, Err(EngineError::Rejected(Rejection::EffectElsewhere { by })) if *by == whose)
}

on_both! {
    async fn another_runs_effect_is_not_repeated_within_the_window(database: &Database) {
        let teller = Teller::new(database).await;
        let plan = told_once(HOUR);
        let ((one, first), (two, second)) = (teller.begins(&plan).await, teller.begins(&plan).await);
        assert!(matches!(teller.asks(&first, "slack:C1").await.unwrap(), EffectAnswer::Perform { .. }));
        assert!(is_elsewhere(&teller.asks(&second, "slack:C1").await, one), "it is under way");
        teller.performs(&first, "slack:C1", true).await;
        assert!(is_elsewhere(&teller.asks(&second, "slack:C1").await, one), "its step may still fail");
        teller.reports(&first, done("7")).await;
        assert_eq!(ends(&teller.engine, teller.tenant, one).await, RunState::Succeeded);
        let answer = teller.asks(&second, "slack:C1").await.unwrap();
        assert!(
            matches!(&answer, EffectAnswer::Performed { response: Some(seven), .. } if seven.as_str() == "7"),
            "{answer:?}"
        );
        // Something else is not the same.
        assert!(matches!(teller.asks(&second, "slack:C2").await.unwrap(), EffectAnswer::Perform { .. }));
        teller.reports(&second, done("7")).await;
        assert_eq!(ends(&teller.engine, teller.tenant, two).await, RunState::Succeeded);
        assert!(teller.told(two).await.contains(&"receipt.deduplicated".to_owned()));
        assert!(!teller.told(one).await.contains(&"receipt.deduplicated".to_owned()));
        stop(teller.engine).await;
    }

    // What a step did itself is found by its own key, whatever others have done since.
    async fn its_own_effect_is_not_repeated_whatever_others_have_done(database: &Database) {
        let teller = Teller::new(database).await;
        let short = told_once(1);
        let (_, first) = teller.begins(&short).await;
        teller.performs(&first, "slack:C1", true).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (_, other) = teller.begins(&short).await;
        assert!(teller.asks(&other, "slack:C1").await.is_err(), "the first has not said that it has succeeded");
        let failed = StepError::new(ErrorClass::Unavailable, "AGAIN", "again");
        let backoff = Some(interlock_core::time::Millis(0));
        teller.reports(&first, ReportedOutcome::Retry { error: failed, backoff }).await;
        let again = teller.engine.workers().poll(teller.session, 1, PATIENCE).await.unwrap().pop().unwrap();
        assert_eq!((again.at.run, again.at.attempt), (first.at.run, 2));
        assert!(matches!(teller.asks(&again, "slack:C1").await.unwrap(), EffectAnswer::Performed { .. }));
        stop(teller.engine).await;
    }

    async fn past_the_window_and_after_a_failure_it_is_a_new_effect(database: &Database) {
        let teller = Teller::new(database).await;
        let short = told_once(1);
        let (one, first) = teller.begins(&short).await;
        teller.performs(&first, "slack:C1", true).await;
        teller.reports(&first, done("1")).await;
        ends(&teller.engine, teller.tenant, one).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (_, second) = teller.begins(&short).await;
        teller.performs(&second, "slack:C1", false).await;
        // The try that failed does not hide the effect before it from a run with a longer window.
        let (long, back) = teller.begins(&told_once(HOUR)).await;
        assert!(matches!(teller.asks(&back, "slack:C1").await.unwrap(), EffectAnswer::Performed { .. }));
        teller.reports(&back, done("1")).await;
        ends(&teller.engine, teller.tenant, long).await;
        let (gone, third) = teller.begins(&told_once(HOUR)).await;
        teller.performs(&third, "slack:C2", true).await;
        // The call was made, and the step has failed all the same.
        let failed = StepError::new(ErrorClass::Terminal, "NO", "no");
        teller.reports(&third, ReportedOutcome::Dead { error: failed }).await;
        let rollback = teller.engine.workers().poll(teller.session, 1, PATIENCE).await.unwrap().pop().unwrap();
        let (_, fourth) = teller.begins(&told_once(HOUR)).await;
        assert!(is_elsewhere(&teller.asks(&fourth, "slack:C2").await, gone), "it is being undone");
        teller.reports(&rollback, done("null")).await;
        ends(&teller.engine, teller.tenant, gone).await;
        let answer = teller.asks(&fourth, "slack:C2").await;
        assert!(matches!(answer, Ok(EffectAnswer::Perform { .. })), "{answer:?}");
        stop(teller.engine).await;
    }

    async fn one_of_many_at_once_performs_it_also_after_a_failure(database: &Database) {
        let teller = Teller::new(database).await;
        let plan = told_once(HOUR);
        let mut begun = Vec::new();
        for _ in 0..8 {
            begun.push(teller.begins(&plan).await);
        }
        for round in 0..4 {
            let asked = begun.iter().map(|(_, assignment)| teller.asks(assignment, "slack:C1"));
            let answers = futures::future::join_all(asked).await;
            let performs = |answer: &Result<EffectAnswer, EngineError>| matches!(answer, Ok(EffectAnswer::Perform { .. }));
            let elsewhere = |answer: &&Result<EffectAnswer, EngineError>| {
                matches!(answer, Err(EngineError::Rejected(Rejection::EffectElsewhere { .. })))
            };
            let performing = answers.iter().filter(|answer| performs(answer)).count();
            assert_eq!((performing, answers.iter().filter(elsewhere).count()), (1, 7), "{round}: {answers:?}");
            let (_, who) = begun.iter().zip(&answers).find(|(_, answer)| performs(answer)).unwrap().0;
            teller.performs(who, "slack:C1", false).await;
        }
        stop(teller.engine).await;
    }

    async fn what_another_run_has_done_is_not_undone(database: &Database) {
        let teller = Teller::new(database).await;
        let plan = told_once(HOUR);
        let (one, first) = teller.begins(&plan).await;
        teller.performs(&first, "slack:C1", true).await;
        // One that was told to wait, and whose tries are used up.
        let (run, second) = teller.begins(&plan).await;
        assert!(is_elsewhere(&teller.asks(&second, "slack:C1").await, one));
        let failed = StepError::new(ErrorClass::Terminal, "EFFECT_ELSEWHERE", "no");
        teller.reports(&second, ReportedOutcome::Dead { error: failed }).await;
        assert_eq!(ends(&teller.engine, teller.tenant, run).await, RunState::Failed);
        assert!(!teller.told(run).await.iter().any(|name| name.starts_with("execution.rollback")));
        teller.reports(&first, done("7")).await;
        ends(&teller.engine, teller.tenant, one).await;

        let (run, third) = teller.begins(&plan).await;
        teller.asks(&third, "slack:C1").await.unwrap();
        teller.reports(&third, done("7")).await;
        assert_eq!(ends(&teller.engine, teller.tenant, run).await, RunState::Succeeded);
        let undo = |run| interlock_engine::commands::undo::UndoRequest { run, from: 0, reason: "no".into(), key: None };
        let undone = teller.engine.runs().undo_as_new(teller.tenant, undo(run), Context::operator("olga")).await;
        assert!(matches!(undone, Err(EngineError::Rejected(Rejection::NothingToUndo { .. }))), "{undone:?}");
        // The one that did it can be undone, and what is undone does not count any more.
        let undoing = teller.engine.runs().undo_as_new(teller.tenant, undo(one), Context::operator("olga")).await.unwrap().run;
        let rollback = teller.engine.workers().poll(teller.session, 1, PATIENCE).await.unwrap().pop().unwrap();
        assert_eq!(rollback.at.run, undoing);
        teller.reports(&rollback, done("null")).await;
        ends(&teller.engine, teller.tenant, undoing).await;
        let (_, fourth) = teller.begins(&plan).await;
        assert!(matches!(teller.asks(&fourth, "slack:C1").await.unwrap(), EffectAnswer::Perform { .. }));
        stop(teller.engine).await;
    }

    async fn a_worker_that_does_not_ask_is_not_given_the_step(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let capabilities = Some(vec!["connector".to_owned()]);
        let mute = engine.workers().register(WorkerHello { capabilities, ..hello(9) }).await.unwrap().session;
        let silent = engine.workers().register(WorkerHello { capabilities: None, ..hello(9) }).await.unwrap().session;
        engine.runs().start(start(tenant, &told_once(HOUR), "null")).await.unwrap();
        for session in [mute, silent] {
            let given = engine.workers().poll(session, 1, Duration::from_millis(300)).await.unwrap();
            assert!(given.is_empty(), "{given:?}");
        }
        let capabilities = Some(vec!["connector".to_owned(), EFFECTS.to_owned()]);
        let asking = engine.workers().register(WorkerHello { capabilities, ..hello(9) }).await.unwrap().session;
        assert_eq!(engine.workers().poll(asking, 1, PATIENCE).await.unwrap().len(), 1);
        stop(engine).await;
    }
}
