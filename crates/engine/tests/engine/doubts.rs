//! A call whose worker was lost is asked about by the server: what its target tells resolves the doubt, and stands in the
//! receipt; what it cannot tell is left to a person.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use interlock_connectors::CallFacts;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::{StepSpec, Work};
use interlock_core::run::change::Context;
use interlock_core::run::receipt::Receipt;
use interlock_core::state::{EffectClass, ReceiptState, RunState, StepState};
use interlock_core::time::Millis;
use interlock_core::work::{EFFECTS, EffectAnswer, EffectIntent, WorkerHello};
use interlock_engine::set_aside::Item;
use interlock_engine::{Engine, EngineOptions};
use serde_json::{Value, json};

use crate::harness::{Database, PATIENCE, ends, engine_with, hello, plan, reaches, short_leases, start, stop, tenant};
use crate::on_both;
use crate::target::Target;
use crate::unreadable::{BROKEN, change};

async fn settling(database: &Database) -> Engine {
    engine_with(database, EngineOptions { effect_settles_after: Millis(300), ..short_leases() }).await
}

/// A run whose worker was lost in the middle of a call, and the call's effect key.
async fn in_doubt(engine: &Engine) -> (TenantId, RunId, String) {
    let tenant = tenant(engine, |_| {}).await;
    let work = Work::Connector { operation: "slack.post".into(), with: None };
    let mut post = StepSpec::new("post", work);
    post.effect = Some(EffectClass::Unsafe);
    let input = json!({ "channel": "C1", "text": "hi", "connection": "slack" }).to_string();
    let run = engine.runs().start(start(tenant, &plan(vec![post]), &input)).await.unwrap().run;
    let capabilities = Some(vec![EFFECTS.into(), "connector".into()]);
    let session = engine.workers().register(WorkerHello { capabilities, ..hello(1) }).await.unwrap().session;
    let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
    let (at, epoch, request) = (assignment.at, assignment.epoch, Json::trusted(input));
    let template = "slack:post:C1".into();
    let intent = EffectIntent { at, epoch, template, number: 0, effect: EffectClass::Unsafe, request };
    let EffectAnswer::Perform { key, .. } = engine.workers().intent(session, intent).await.unwrap() else { panic!() };
    engine.workers().left_out(assignment.at).await.unwrap();
    reaches(engine, tenant, run, RunState::Paused).await;
    (tenant, run, key)
}

async fn receipt(engine: &Engine, tenant: TenantId, run: RunId) -> Receipt {
    engine.store().receipts(tenant, run).await.unwrap().remove(0).receipt
}

/// A run that an operator has paused before it began.
async fn paused(engine: &Engine, tenant: TenantId) -> RunId {
    let mut step = StepSpec::task("a", "a");
    step.queue = "nobody-polls-it".into();
    let run = engine.runs().start(start(tenant, &plan(vec![step]), "null")).await.unwrap().run;
    engine.runs().pause(tenant, run, "look first".into(), Context::operator("olga")).await.unwrap();
    run
}

/// Waits until the doubt is resolved: it has not happened.
async fn is_resolved(engine: &Engine, tenant: TenantId, run: RunId) {
    let settled = async {
        while receipt(engine, tenant, run).await.state != ReceiptState::Failed {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.expect("the doubt is resolved");
}

/// A channel that shows these messages.
fn channel(messages: &Arc<Mutex<Vec<Value>>>) -> Target {
    let messages = Arc::clone(messages);
    Target::new(move |_| Some((200, json!({ "ok": true, "messages": *messages.lock().unwrap(), "has_more": false }))))
}

on_both! {
    async fn what_the_target_has_seen_has_happened(database: &Database) {
        let engine = settling(database).await;
        let messages = Arc::new(Mutex::new(Vec::new()));
        let (tenant, run, key) = in_doubt(&engine).await;
        let mark = CallFacts { key, ..CallFacts::default() }.mark();
        let metadata = json!({ "event_type": "interlock_effect", "event_payload": { "mark": mark } });
        messages.lock().unwrap().push(json!({ "ts": "7.0", "metadata": metadata }));
        // A server that comes later finds the doubt by itself.
        engine.reach_targets(channel(&messages).caller());
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let kept = receipt(&engine, tenant, run).await;
        assert_eq!(kept.state, ReceiptState::Succeeded);
        let response = kept.response.unwrap().to_value().unwrap();
        assert_eq!((&response["channel"], &response["ts"]), (&json!("C1"), &json!("7.0")), "the evidence");
        stop(engine).await;
    }

    async fn what_left_no_trace_is_done_again(database: &Database) {
        let engine = settling(database).await;
        let target = channel(&Arc::default());
        engine.reach_targets(target.caller());
        let (tenant, run, _) = in_doubt(&engine).await;
        is_resolved(&engine, tenant, run).await;
        let kept = receipt(&engine, tenant, run).await;
        assert_eq!(kept.state, ReceiptState::Failed);
        assert_eq!(kept.response.unwrap().to_value().unwrap()["found"], json!(false), "the evidence");
        let steps = engine.store().steps(tenant, run).await.unwrap();
        assert_eq!(steps[0].state, StepState::Ready);
        assert!(target.asked().iter().all(|asked| asked.starts_with("GET ")), "{:?}", target.asked());
        stop(engine).await;
    }

    async fn a_doubt_is_found_behind_a_paused_run_that_cannot_be_read(database: &Database) {
        let engine = settling(database).await;
        let (tenant, run, _) = in_doubt(&engine).await;
        // The list of paused runs begins with the newest one.
        let broken = paused(&engine, tenant).await;
        change(database, broken, BROKEN).await;
        stop(engine).await;
        // Nobody tells this server of the doubt.
        let engine = settling(database).await;
        engine.reach_targets(channel(&Arc::default()).caller());
        is_resolved(&engine, tenant, run).await;
        let aside = engine.health().set_aside();
        assert!(aside.iter().any(|aside| aside.item == Item::Run(broken)), "{aside:?}");
        stop(engine).await;
    }

    async fn a_doubt_is_found_behind_more_paused_runs_than_one_look_takes_in(database: &Database) {
        let engine = settling(database).await;
        let (tenant, run, _) = in_doubt(&engine).await;
        for _ in 0..9 {
            futures::future::join_all((0..64).map(|_| paused(&engine, tenant))).await;
        }
        stop(engine).await;
        let engine = settling(database).await;
        engine.reach_targets(channel(&Arc::default()).caller());
        is_resolved(&engine, tenant, run).await;
        stop(engine).await;
    }

    async fn what_the_target_cannot_tell_stays_with_a_person(database: &Database) {
        let engine = settling(database).await;
        let target = Target::new(|_| None);
        engine.reach_targets(target.caller());
        let (tenant, run, _) = in_doubt(&engine).await;
        let asked = async {
            while target.asked().is_empty() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.expect("the target is asked");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(target.asked().len(), 1, "the next question has time");
        assert_eq!(receipt(&engine, tenant, run).await.state, ReceiptState::InDoubt);
        reaches(&engine, tenant, run, RunState::Paused).await;
        stop(engine).await;
    }
}
