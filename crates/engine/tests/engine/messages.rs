//! Where a task's messages may go, and what becomes of those that do not get there, on both databases.

use std::time::Duration;

use interlock_core::ids::{OutboundId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::StepSpec;
use interlock_core::state::RunState;
use interlock_core::work::{OutboundMessage, Report, ReportedOutcome};
use interlock_engine::audit::Actor;
use interlock_engine::vault::Vault;
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_engine::{Engine, EngineError, EngineOptions};
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_store::{DeadLetter, OutboundRow};

use crate::harness::{Database, PATIENCE, done, ends, engine_with, hello, options, plan, report, start, stop, tenant};
use crate::on_both;

/// A worker whose step asks with these messages.
fn asks(destination: String) -> ReportedOutcome {
    let message = OutboundMessage { destination, payload: Json::parse(r#"{"n":1}"#, 10).unwrap() };
    ReportedOutcome::Waiting { signal: "answer".into(), key: None, timeout: None, outbound: vec![message] }
}

on_both! {
    async fn a_message_to_nowhere_is_refused_when_the_step_reports_it(database: &Database) {
        let engine = crate::harness::engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = engine.workers().register(hello(1)).await.unwrap().session;
        let run = engine.runs().start(start(tenant, &plan(vec![StepSpec::task("ask", "ask")]), "null")).await.unwrap().run;
        let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
        let (gone, unknown) = (RunId(engine.fresh_id()), OutboundId(engine.fresh_id()));
        let nowhere =
            ["log".to_owned(), format!("signal:{gone}/go"), format!("webhook:{unknown}"), "webhook:desk".to_owned()];
        for destination in nowhere {
            let outcome = asks(destination.clone());
            let report = Report { at: assignment.at, epoch: assignment.epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() };
            let refused = engine.workers().complete(session, report).await.unwrap_err();
            assert!(matches!(refused, EngineError::Rejected(_)), "{destination}: {refused}");
        }
        // The attempt is still the worker's, and nothing was sent.
        let outcome = done("1");
        let report = Report { at: assignment.at, epoch: assignment.epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() };
        engine.workers().complete(session, report).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        assert_eq!(engine.store().next_outbox().await.unwrap(), None);
        stop(engine).await;
    }

    async fn an_endpoint_is_known_by_its_name_in_its_own_tenant(database: &Database) {
        let outbound = Some(Outbound::new(OutboundOptions::default()).unwrap());
        let engine =
            engine_with(database, EngineOptions { vault: Some(Vault::new(&[3; 32])), outbound, ..options() }).await;
        let (mine, theirs) = (tenant(&engine, |_| {}).await, tenant(&engine, |_| {}).await);
        let new = |name: &str| NewOutbound {
            name: Some(name.into()), url: "https://desk.invalid/".into(), description: None, events: None, workflows: None,
        };
        let webhooks = engine.webhooks();
        let (row, _) = webhooks.draft_outbound(mine, new("desk"), None).await.unwrap();
        webhooks.add_outbound(row.clone(), &Actor::system(), None).await.unwrap();
        let taken = webhooks.draft_outbound(mine, new("desk"), None).await.unwrap_err();
        assert_eq!(taken.code(), "NAME_TAKEN", "{taken}");
        // Two servers at once: one of them finds the name free, and comes second.
        let second = OutboundRow { id: OutboundId(engine.fresh_id()), ..row.clone() };
        let refused = webhooks.add_outbound(second, &Actor::system(), None).await.unwrap_err();
        assert_eq!(refused.code(), "NAME_TAKEN");
        assert!(refused.to_string().contains("`desk`"), "{refused}");
        assert!(webhooks.draft_outbound(mine, new("who_1"), None).await.is_err(), "it would pass for an id");
        assert!(webhooks.draft_outbound(theirs, new("desk"), None).await.is_ok(), "names are a tenant's own");
        assert_eq!(webhooks.outbound_endpoint(mine, "desk").await.unwrap().id, row.id);
        assert!(webhooks.outbound_endpoint(theirs, "desk").await.is_err());

        let session = engine.workers().register(hello(2)).await.unwrap().session;
        let ask = plan(vec![StepSpec::task("ask", "ask")]);
        for (tenant, arrives) in [(mine, true), (theirs, false)] {
            engine.runs().start(start(tenant, &ask, "null")).await.unwrap();
            let assignment = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
            let outcome = asks("webhook:desk".to_owned());
            let report = Report { at: assignment.at, epoch: assignment.epoch, outcome, claim_next: false, cost: None, credentials: Vec::new() };
            assert_eq!(engine.workers().complete(session, report).await.is_ok(), arrives);
        }
        assert_eq!(engine.store().messages(mine, row.id, None, 10).await.unwrap().len(), 1);
        stop(engine).await;
    }

    async fn a_message_to_a_run_is_a_signal_for_it_and_a_dead_letter_once_that_has_ended(database: &Database) {
        let engine = crate::harness::engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let ask = plan(vec![StepSpec::task("ask", "ask")]);
        let session = engine.workers().register(hello(2)).await.unwrap().session;
        // One run waits for what the other one sends.
        let waits = engine.runs().start(start(tenant, &ask, "null")).await.unwrap().run;
        let first = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
        report(&engine, session, &first, ReportedOutcome::Waiting {
            signal: "go".into(), key: None, timeout: None, outbound: Vec::new(),
        }).await;
        let sends = engine.runs().start(start(tenant, &ask, "null")).await.unwrap().run;
        let second = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
        assert_eq!(second.at.run, sends);
        report(&engine, session, &second, asks(format!("signal:{waits}/go"))).await;
        let woken = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
        assert_eq!((woken.at.run, woken.payload.as_ref().map(Json::as_str)), (waits, Some(r#"{"n":1}"#)));
        report(&engine, session, &woken, done("1")).await;
        assert_eq!(ends(&engine, tenant, waits).await, RunState::Succeeded);
        // The next one comes too late: it is kept, with the reason, and can be sent again.
        let late = engine.runs().start(start(tenant, &ask, "null")).await.unwrap().run;
        let third = engine.workers().poll(session, 1, PATIENCE).await.unwrap().remove(0);
        assert_eq!(third.at.run, late);
        report(&engine, session, &third, asks(format!("signal:{waits}/go"))).await;
        let letters = dead_letters(&engine, tenant).await;
        assert_eq!((letters.len(), letters[0].run), (1, late));
        assert!(letters[0].error.as_ref().is_some_and(|error| error.contains("succeeded")), "{letters:?}");
        assert_eq!(engine.webhooks().replay_dead(tenant, vec![letters[0].id], &Actor::system()).await.unwrap(), 1);
        assert!(dead_letters(&engine, tenant).await[0].dead_at > letters[0].dead_at, "it was tried anew");
        stop(engine).await;
    }
}

/// Waits until there is one.
async fn dead_letters(engine: &Engine, tenant: TenantId) -> Vec<DeadLetter> {
    let found = async {
        loop {
            let letters = engine.store().dead_letters(tenant, None, 10).await.unwrap();
            if !letters.is_empty() {
                return letters;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("it is given up")
}
