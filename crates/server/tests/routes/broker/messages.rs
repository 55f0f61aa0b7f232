//! What a server believes of a single message, and how often.

use std::sync::Arc;

use interlock_broker::message::{CallEntry, CallKind};
use interlock_broker::{fresh_key, fresh_name};
use interlock_core::json::Json;
use interlock_core::plan::{Plan, StepSpec};
use interlock_core::tenant::identity::Role;
use interlock_engine::{EncodedPlan, StartRun};
use serde_json::{Value, json};

use super::hostile::connected;
use super::redis_server::RedisServer;
use super::{BrokerServer, hello};
use crate::harness::{attempt, completed};

/// Whatever a request would be refused for, a call over the broker is.
#[tokio::test]
async fn calls_are_what_requests_would_be() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let (status, registered) = raw.call("register", hello()).await;
    assert_eq!(status, 200, "{registered}");
    let session = &registered["session"];
    let (status, polled) = raw.call("poll", json!({ "session": session, "max": 1, "wait_ms": 50 })).await;
    assert_eq!((status, &polled["assignments"]), (200, &json!([])), "{polled}");
    for (call, body, status, code) in [
        ("../runs", json!({}), 404, "ROUTE_NOT_FOUND"),
        ("channel", json!({}), 404, "ROUTE_NOT_FOUND"),
        ("broker", json!({}), 404, "ROUTE_NOT_FOUND"),
        ("register", json!({ "worker": "w" }), 400, "REQUEST_INVALID"),
        ("poll", json!({ "session": "ses_0190a1b2c3d4e5f60718293a4b5c6d7e", "max": 1 }), 410, "SESSION_GONE"),
        ("no address\u{7}", json!({}), 404, "ROUTE_NOT_FOUND"),
    ] {
        let (was, problem) = raw.call(call, body).await;
        assert_eq!((was, problem["code"].as_str()), (status, Some(code)), "{call}: {problem}");
    }
    assert_eq!(raw.call("unregister", json!({ "session": session })).await.0, 204);
    served.server.end().await;
}

/// The same message again, byte for byte or sealed anew: one session is begun, and its id is told each time.
#[tokio::test]
async fn a_call_that_comes_again_is_worked_on_once() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let name = fresh_name();
    let sealed = raw.sealed(&name, "register", &hello(), 0);
    raw.write(&sealed).await;
    let first = raw.answers(&name, 1).await.remove(0);
    raw.write(&sealed).await;
    raw.write(&raw.sealed(&name, "register", &hello(), 0)).await;
    let all = raw.answers(&name, 3).await;
    assert!(all.iter().all(|answer| *answer == first), "{all:?}");
    assert_eq!(served.counted("duplicate").await, 2);
    assert_eq!(served.sessions().await, 1);
    served.server.end().await;
}

/// Another report under the name of the first is another call, and refused as a request would be.
#[tokio::test]
async fn another_report_under_the_name_of_the_first_is_refused() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let session = raw.call("register", hello()).await.1["session"].clone();
    let plan = EncodedPlan::new(Plan::new("w", vec![StepSpec::task("a", "count")])).unwrap();
    served.server.engine.runs().start(StartRun::new(served.tenant, plan, Json::null())).await.unwrap();
    let (_, polled) = raw.call("poll", json!({ "session": session, "max": 1, "wait_ms": 1_000 })).await;
    let (name, call) = (fresh_name(), format!("{}/complete-step", session.as_str().unwrap()));
    let mut said = Vec::new();
    for output in [1, 1, 2] {
        let mut report = attempt(&polled["assignments"][0]);
        report["outcome"] = completed(json!(output));
        raw.write(&raw.sealed(&name, &call, &report, 0)).await;
        said = raw.answers(&name, said.len() + 1).await;
    }
    let (refused, first) = (&said[2], (200, json!({ "recorded": true })));
    assert_eq!(said[..2], [first.clone(), first], "a call that comes again gets the first answer");
    assert_eq!((refused.0, &refused.1["code"]), (409, &json!("STEP_STALE_ATTEMPT")), "{}", refused.1);
    served.server.end().await;
}

#[tokio::test]
async fn what_is_old_or_not_a_workers_is_not_believed() {
    let redis = RedisServer::start().await;
    let (served, elsewhere) = (BrokerServer::by(&redis.url()).await, BrokerServer::by(&redis.url()).await);
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let (_, other_key) = elsewhere.key(Role::Worker).await;
    let foreign = elsewhere.raw(&redis.url(), &other_key).await;

    // Too old, and from the future.
    raw.write(&raw.sealed("old", "register", &hello(), 31_000)).await;
    raw.write(&raw.sealed("ahead", "register", &hello(), -120_000)).await;
    // Another installation's ticket, in our stream.
    let sealed = foreign.sealed("foreign", "register", &hello(), 0);
    let entry = CallEntry { kind: CallKind::Call, ticket: foreign.ticket.ticket.as_bytes(), sealed: &sealed };
    raw.connection.add_call(&raw.ticket.calls, &entry).await.unwrap();
    // Our ticket, and another key.
    let mut stolen = served.raw(&redis.url(), &key).await;
    stolen.sealer = interlock_broker::Sealer::new(&fresh_key());
    stolen.write(&stolen.sealed("stolen", "register", &hello(), 0)).await;
    // Sealed as one kind, and written as another.
    let sealed = raw.sealed("kind", "register", &hello(), 0);
    let entry = CallEntry { kind: CallKind::Result, ticket: raw.ticket.ticket.as_bytes(), sealed: &sealed };
    raw.connection.add_call(&raw.ticket.calls, &entry).await.unwrap();
    // Of another worker's ticket.
    let beside = served.raw(&redis.url(), &key).await;
    let entry = CallEntry { kind: CallKind::Call, ticket: beside.ticket.ticket.as_bytes(), sealed: &sealed };
    raw.connection.add_call(&raw.ticket.calls, &entry).await.unwrap();
    // No form at all.
    for words in
        ["a b", "type session.call ticket x sealed y", "type x ticket x sealed x", "sealed x type session.call"]
    {
        redis.say(&format!("XADD {} * {words}", raw.ticket.calls)).await.unwrap();
    }

    // What comes behind all that is answered.
    assert_eq!(raw.call("register", hello()).await.0, 200);
    assert_eq!((served.counted("expired").await, served.counted("unreadable").await), (2, 8));
    assert_eq!((served.counted("handled").await, elsewhere.counted("handled").await), (1, 0));
    assert_eq!(served.sessions().await, 1);
    served.server.end().await;
    elsewhere.server.end().await;
}

/// Steps whose answer does not fit go back, and are there for the request that is made instead.
#[tokio::test]
async fn an_answer_that_is_too_long_is_asked_for_by_a_request() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let session = raw.call("register", hello()).await.1["session"].clone();
    let long = format!("\"{}\"", "x".repeat(400_000));
    let plan = EncodedPlan::new(Plan::new("w", vec![StepSpec::task("a", "count")])).unwrap();
    for _ in 0..4 {
        let start = StartRun::new(served.tenant, Arc::clone(&plan), Json::trusted(&*long));
        served.server.engine.runs().start(start).await.unwrap();
    }
    let poll = json!({ "session": session, "max": 4, "wait_ms": 1_000 });
    let mut given = 0;
    let mut told = false;
    while given < 4 {
        let (status, answer) = raw.call("poll", poll.clone()).await;
        if status == 200 {
            given += answer["assignments"].as_array().unwrap().len();
            assert!(given < 3, "that many do not fit at once");
            continue;
        }
        assert_eq!((status, &answer["code"]), (413, &json!("ANSWER_TOO_LONG")), "{answer}");
        told = true;
        let url = format!("{}/api/v1/agent/poll", served.url());
        let answer = reqwest::Client::new().post(url).bearer_auth(&key).json(&poll).send().await.unwrap();
        given += answer.json::<Value>().await.unwrap()["assignments"].as_array().unwrap().len();
    }
    assert!(told);
    served.server.end().await;
}

/// A server that took a call and died: another one answers it. The worker does not write the call again.
#[tokio::test]
async fn what_a_dead_server_has_taken_is_taken_over() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    let name = fresh_name();
    let sealed = raw.sealed(&name, "register", &hello(), 0);
    let calls = &raw.ticket.calls;
    let mut both = redis::pipe();
    // All at once, so that the server that lives comes too late.
    both.atomic().cmd("XADD").arg(calls).arg("*").arg("type").arg("session.call");
    both.arg("ticket").arg(&raw.ticket.ticket).arg("sealed").arg(&sealed[..]);
    both.cmd("XREADGROUP").arg("GROUP").arg("servers").arg("dead").arg("STREAMS").arg(calls).arg(">");
    both.cmd("XPENDING").arg(calls).arg("servers").arg("-").arg("+").arg(10).arg("dead");
    let taken: Vec<redis::Value> = both.query_async(&mut connected(&redis).await).await.unwrap();
    for which in [1, 2] {
        assert!(matches!(&taken[which], redis::Value::Array(one) if one.len() == 1), "{taken:?}");
    }
    assert_eq!(raw.answers(&name, 1).await[0].0, 200);
    assert_eq!(served.counted("handled").await, 1);
    let pending = redis.say(&format!("XPENDING {calls} servers - + 10")).await.unwrap();
    assert_eq!(pending, "*0\r\n", "what was answered is nobody's");
    served.server.end().await;
}
