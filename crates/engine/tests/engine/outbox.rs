//! Messages that steps send: at least once, in order, on both databases.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::json::Json;
use interlock_core::plan::StepSpec;
use interlock_core::work::{OutboundMessage, ReportedOutcome};
use interlock_engine::EngineOptions;
use interlock_engine::audit::Actor;
use interlock_engine::deliver::{Deliver, DeliverError};
use interlock_engine::vault::Vault;
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_store::OutboxMessage;

use crate::harness::{Database, PATIENCE, done, engine_with, options, plan, start, stop, tenant, work};
use crate::on_both;

#[derive(Default)]
struct RecordedDeliveries(Mutex<Vec<u64>>);

impl Deliver for RecordedDeliveries {
    fn takes(&self, destination: &str) -> bool {
        destination == "log"
    }

    fn deliver<'a>(&'a self, message: &'a OutboxMessage) -> BoxFuture<'a, Result<(), DeliverError>> {
        self.0.lock().unwrap().push(message.payload.decode().unwrap());
        Box::pin(std::future::ready(Ok(())))
    }
}

const MESSAGES: u64 = 12;

on_both! {
    async fn messages_of_one_step_arrive_in_the_order_in_which_it_sent_them(database: &Database) {
        let heard = Arc::new(RecordedDeliveries::default());
        let engine = engine_with(database, EngineOptions { deliver: heard.clone(), ..options() }).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 1, |_| async {
            let message = |number: u64| OutboundMessage {
                destination: "log".into(),
                payload: Json::parse(&number.to_string(), 10).unwrap(),
            };
            let outbound = (0..MESSAGES).map(message).collect();
            ReportedOutcome::Waiting { signal: "answer".into(), key: None, timeout: None, outbound }
        });
        engine.runs().start(start(tenant, &plan(vec![StepSpec::task("ask", "ask")]), "null")).await.unwrap();
        let all = async {
            while heard.0.lock().unwrap().len() < MESSAGES as usize {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap();
        assert_eq!(*heard.0.lock().unwrap(), (0..MESSAGES).collect::<Vec<_>>());
        stop(engine).await;
    }

    // As mere futures the sends stood still while the relay read, with the connections that it waited for.
    async fn endpoints_that_cannot_be_reached_leave_the_store_to_others(database: &Database) {
        let outbound = Some(Outbound::new(OutboundOptions::default()).unwrap());
        let options = EngineOptions { vault: Some(Vault::new(&[3; 32])), outbound, ..options() };
        let engine = engine_with(database, options).await;
        let tenant = tenant(&engine, |_| {}).await;
        for number in 0..12 {
            let url = format!("https://receiver-{number}.invalid/");
            let new = NewOutbound { name: None, url, description: None, events: None, workflows: None };
            let (row, _) = engine.webhooks().draft_outbound(tenant, new, None).await.unwrap();
            engine.webhooks().add_outbound(row, &Actor::system(), None).await.unwrap();
        }
        work(&engine, 4, |_| async { done("1") });
        for _ in 0..40 {
            engine.runs().start(start(tenant, &plan(vec![StepSpec::task("a", "a")]), "null")).await.unwrap();
        }
        for _ in 0..100 {
            let read = tokio::time::timeout(PATIENCE, engine.store().last_cursor(tenant)).await;
            read.expect("the store answers").unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop(engine).await;
    }
}
