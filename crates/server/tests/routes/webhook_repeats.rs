//! Which deliveries are one where a sender signs the body and not the id beside it, and what a NUL in a signed body comes
//! to: on both databases.

use std::collections::BTreeSet;
use std::time::Duration;

use interlock_core::ids::{InboundId, ServerId};
use interlock_core::json::{Hash, Json};
use interlock_core::limits::IDEMPOTENCY_COMPLETED_TTL;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::Source;
use interlock_engine::Engine;
use interlock_store::{
    BeginDelivery, DeliveryBegun, DeliveryRef, DeliveryRow, Fingerprint, Options, SignedBody, Store, StoreUrl,
};
use serde_json::json;

use crate::harness::{self, Api, ApiResponse, task};
use crate::schedules::apply;
use crate::webhooks::{COUNT, SECRET, endpoint, github, hex, hmac, pull_request, send};

const ANY: &str = "name: any\non: webhook\nsteps:\n  - id: a\n    transform: seen\n";

/// Two tests of each, with the name of the second one's database.
macro_rules! on_both {
    ($($name:ident: $database:literal,)+) => {
        mod sqlite {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                let api = crate::harness::Api::new().await;
                super::$name(&api).await;
                api.end().await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let api = crate::harness::Api::on_postgres($database).await;
                super::$name(&api).await;
                api.end().await;
            })+
        }
    };
}

on_both! {
    a_body_that_started_nothing_may_come_again_under_another_id: "hooks_refused",
    a_body_whose_delivery_failed_is_tried_again_under_another_id: "hooks_failed",
    a_repeat_takes_no_id_and_an_id_keeps_no_other_body_away: "hooks_ids",
    a_body_that_github_has_signed_starts_its_runs_once: "hooks_github",
    a_name_with_a_nul_is_refused_and_a_payload_keeps_its_own: "hooks_nul",
}

/// A body that a generic sender has signed, under an id that it has not.
async fn generic(api: &Api, path: &str, id: Option<&str>, body: &str) -> ApiResponse {
    let signature = hex(&hmac(SECRET.as_bytes(), body.as_bytes()));
    let mut headers = vec![("x-signature-256", signature.as_str())];
    headers.extend(id.map(|id| ("x-delivery-id", id)));
    send(api, path, body, &headers).await
}

/// The runs that an answer names.
fn started(answer: &ApiResponse) -> Vec<String> {
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

/// How many runs of a workflow there are.
async fn count(api: &Api, workflow: &str) -> usize {
    api.get(&format!("/runs?workflow={workflow}")).await.ok()["runs"].as_array().unwrap().len()
}

/// The key of a delivery under an id of its sender's.
fn keyed(path: &str, id: &str) -> String {
    format!("webhook:{}:{id}", path.rsplit('/').next().unwrap())
}

async fn a_body_that_started_nothing_may_come_again_under_another_id(api: &Api) {
    let one = "name: one\non: webhook\nsubject: lane\nsteps:\n  - id: a\n    wait: { for: 1h }\n";
    apply(&api.engine, api.tenant, one).await;
    let path = endpoint(api, "generic").await;
    let holder = api.post("/runs", json!({ "workflow": "one" })).await.text("run_id");
    let body = r#"{"amount":7}"#;
    let refused = generic(api, &path, Some("a"), body).await;
    assert_eq!((started(&refused), &refused.body["skipped"][0]["code"]), (vec![], &json!("RUN_SUBJECT_BUSY")));
    let canceled = api.post(&format!("/runs/{holder}/cancel"), json!({ "reason": "it is over" })).await.ok();
    assert_eq!(canceled["state"], "canceled");

    let again = generic(api, &path, Some("a"), body).await;
    assert_eq!(again.body, refused.body, "the same delivery has had its answer");
    let second = generic(api, &path, Some("b"), body).await;
    let runs = started(&second);
    assert_eq!((runs.len(), second.body.get("duplicate_of")), (1, None), "{}", second.body);
    let third = generic(api, &path, Some("c"), body).await;
    assert_eq!((started(&third), third.text("duplicate_of")), (runs.clone(), keyed(&path, "b")));
    assert_eq!(count(api, "one").await, 2, "the one that held the subject, and one for the body");

    // The same of a body that is known by itself, since its id was another's.
    let holder = runs.first().unwrap();
    let other = r#"{"amount":8}"#;
    let busy = generic(api, &path, Some("a"), other).await;
    assert_eq!((started(&busy), &busy.body["skipped"][0]["code"]), (vec![], &json!("RUN_SUBJECT_BUSY")));
    assert!(busy.text("delivery").starts_with("body:"), "{}", busy.body);
    api.post(&format!("/runs/{holder}/cancel"), json!({ "reason": "it is over" })).await.ok();
    let fresh = generic(api, &path, Some("d"), other).await;
    assert_eq!((started(&fresh).len(), fresh.body.get("duplicate_of")), (1, None), "{}", fresh.body);
}

async fn a_body_whose_delivery_failed_is_tried_again_under_another_id(api: &Api) {
    apply(&api.engine, api.tenant, "name: any\non: webhook\nsteps:\n  - id: a\n    task: t\n").await;
    let path = endpoint(api, "generic").await;
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.pending_runs_max = Some(1);
    api.engine.tenants().put(tenant.clone()).await.unwrap();
    api.start(json!([task("a")])).await;
    let body = r#"{"amount":7}"#;
    for id in ["a", "b"] {
        assert_eq!(generic(api, &path, Some(id), body).await.problem(), (429, "TENANT_PENDING_RUNS"), "{id}");
    }
    tenant.pending_runs_max = None;
    api.engine.tenants().put(tenant).await.unwrap();
    let third = generic(api, &path, Some("c"), body).await;
    let runs = started(&third);
    assert_eq!(runs.len(), 1, "{}", third.body);
    assert_eq!((third.text("delivery"), third.text("duplicate_of")), (keyed(&path, "c"), keyed(&path, "a")));
    for id in ["a", "d"] {
        assert_eq!(started(&generic(api, &path, Some(id), body).await), runs, "{id}");
    }
    let due = api.engine.store().due_deliveries(Timestamp(i64::MAX), 10).await.unwrap();
    assert_eq!(due, [], "nothing is left to be tried again");
    assert_eq!(count(api, "any").await, 1);
}

async fn a_repeat_takes_no_id_and_an_id_keeps_no_other_body_away(api: &Api) {
    apply(&api.engine, api.tenant, ANY).await;
    let path = endpoint(api, "generic").await;
    let first = started(&generic(api, &path, Some("one"), r#"{"n":1}"#).await);
    assert_eq!(started(&generic(api, &path, Some("two"), r#"{"n":1}"#).await), first, "captured, and sent again");
    let genuine = generic(api, &path, Some("two"), r#"{"n":2}"#).await;
    assert_eq!((started(&genuine).len(), genuine.body.get("duplicate_of")), (1, None));
    assert_eq!(genuine.text("delivery"), keyed(&path, "two"), "the repeat has not taken it");
    let other = generic(api, &path, Some("one"), r#"{"n":3}"#).await;
    assert_eq!((started(&other).len(), other.body.get("duplicate_of")), (1, None), "its id was used for another body");
    assert_eq!(started(&generic(api, &path, Some("one"), r#"{"n":3}"#).await), started(&other));
    assert_eq!(count(api, "any").await, 3);

    // Nor does an id take the key under which another delivery starts a run.
    assert_eq!(started(&generic(api, &path, Some("ten#any"), r#"{"n":10}"#).await).len(), 1);
    let ten = generic(api, &path, Some("ten"), r#"{"n":11}"#).await;
    assert_eq!((started(&ten).len(), ten.text("delivery")), (1, keyed(&path, "ten")), "{}", ten.body);
    assert_eq!(count(api, "any").await, 5);

    // In the body an id is signed, and two bodies with it are a mistake; what a header says is none of the body's.
    assert_eq!(started(&generic(api, &path, Some("8"), r#"{"n":4}"#).await).len(), 1);
    let signed = generic(api, &path, None, r#"{"id":8,"n":5}"#).await;
    assert_eq!(started(&signed).len(), 1, "{}", signed.body);
    assert_eq!(started(&generic(api, &path, None, r#"{"id":8,"n":5}"#).await), started(&signed));
    assert_eq!(started(&generic(api, &path, None, r#"{"id":9,"n":6}"#).await).len(), 1);
    let twice = generic(api, &path, None, r#"{"id":9,"n":7}"#).await;
    assert_eq!(twice.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    assert_eq!(count(api, "any").await, 8);
}

async fn a_body_that_github_has_signed_starts_its_runs_once(api: &Api) {
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(api, "github").await;
    let opened = pull_request(7, "opened", "abc");
    let first = github(api, &path, "d-1", &opened).await;
    let replayed = github(api, &path, "d-2", &opened).await;
    assert_eq!((started(&replayed), replayed.text("duplicate_of")), (started(&first), "github:d-1".to_owned()));
    let redelivered = github(api, &path, "d-1", &opened).await;
    assert_eq!((&redelivered.body, redelivered.headers.get("idempotency-replayed").is_some()), (&first.body, true));
    let genuine = github(api, &path, "d-2", &pull_request(8, "opened", "def")).await;
    assert_eq!((started(&genuine).len(), genuine.text("delivery")), (1, "github:d-2".to_owned()));
    let other = github(api, &path, "d-1", &pull_request(9, "opened", "ghi")).await;
    assert_eq!((started(&other).len(), other.body.get("duplicate_of")), (1, None), "{}", other.body);
    assert!(other.text("delivery").starts_with("body:"), "{}", other.body);
    let again = github(api, &path, "d-1", &pull_request(9, "opened", "ghi")).await;
    assert_eq!(started(&again), started(&other));
    assert_eq!(count(api, "count").await, 3);
    let log = api.get("/webhooks/github-main/deliveries").await.ok();
    assert_eq!(log["deliveries"].as_array().unwrap().len(), 3, "repeats are no deliveries of their own: {log}");
}

async fn a_name_with_a_nul_is_refused_and_a_payload_keeps_its_own(api: &Api) {
    let noted = "name: noted\non:\n  webhook: { source: generic }\ninputs: { note: { type: string } }\nsteps:\n  - id: a\n    transform: seen\n";
    apply(&api.engine, api.tenant, noted).await;
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(api, "generic").await;
    for body in [r#"{"type":"a\u0000b"}"#, r#"{"event":"\u0000"}"#, r#"{"id":"a\u0000"}"#] {
        assert_eq!(generic(api, &path, None, body).await.problem(), (400, "WEBHOOK_INVALID"), "{body}");
    }
    let kept = generic(api, &path, Some("one"), r#"{"type":"t","note":"a\u0000b","other\u0000":"\u0000"}"#).await;
    let run = started(&kept).pop().unwrap();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["inputs"]["note"], "a\0b");

    // By its labels a run is found: none has a NUL, and none is changed into another.
    let path = endpoint(api, "github").await;
    let labelled = github(api, &path, "d-1", &json!({ "repository": { "full_name": "acme/sh\0op" } })).await;
    assert_eq!((started(&labelled), &labelled.body["skipped"][0]["code"]), (vec![], &json!("INPUT_INVALID")));

    let path = endpoint(api, "slack").await;
    let command = async |form: &str| {
        let seconds = (api.engine.now().0 / 1_000).to_string();
        let signature = format!("v0={}", hex(&hmac(SECRET.as_bytes(), format!("v0:{seconds}:{form}").as_bytes())));
        let kind = ("content-type", "application/x-www-form-urlencoded");
        let headers = [kind, ("x-slack-request-timestamp", &*seconds), ("x-slack-signature", &*signature)];
        send(api, &path, form, &headers).await
    };
    for form in [
        "team_id=T1&trigger_id=1.1&command=%2Fdeploy%00&text=a",
        "team_id=T1&trigger_id=1.1%00&command=%2Fdeploy&text=a",
        "team_id=T1&trigger_id=1.1&command=%2Fdeploy&text=a%00",
        "team_id=T1&trigger_id=1.1&command=%2Fdeploy&text=a&channel_name%00=ops",
    ] {
        assert_eq!(command(form).await.problem(), (400, "WEBHOOK_INVALID"), "{form}");
    }
    assert_eq!(command("team_id=T1&trigger_id=1.1&command=%2Fdeploy&text=a").await.status, 200);
    let log = api.get("/webhooks/slack-main/deliveries").await.ok();
    assert_eq!(log["deliveries"].as_array().unwrap().len(), 1, "what was refused is not stored");
}

/// A server takes a body and dies. Meanwhile it comes under another id.
#[tokio::test(start_paused = true)]
async fn a_body_whose_server_died_is_started_once() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, ANY).await;
    let path = endpoint(&api, "generic").await;
    let id: InboundId = path.rsplit('/').next().unwrap().parse().unwrap();
    let (body, now) = (r#"{"n":1}"#, api.engine.now());
    let (request_hash, lock_until) = (Hash::of(body.as_bytes()), now + Millis::from_mins(5));
    let hash = Hash::of(request_hash.to_string().as_bytes());
    let signed_body = SignedBody {
        body: Fingerprint { hash, since: now - IDEMPOTENCY_COMPLETED_TTL },
        about: None,
        key: format!("body:{request_hash}"),
        has_id: false,
        instead_of: None,
    };
    let delivery = DeliveryRow {
        at: DeliveryRef { tenant: api.tenant, endpoint: id, key: keyed(&path, "one") },
        event: String::new(),
        payload: Json::trusted(body),
        received_at: now,
        retry_at: Some(lock_until),
    };
    let (source, signed_body) = (Source::Generic, Some(signed_body));
    let begin = BeginDelivery { delivery, source, request_hash, signed_body, now, lock_until };
    assert_eq!(api.engine.store().write(begin).await.unwrap().begun, DeliveryBegun::Begun(1));

    let meanwhile = generic(&api, &path, Some("two"), body).await;
    assert_eq!(started(&meanwhile), Vec::<String>::new());
    let told = (meanwhile.text("status"), meanwhile.text("duplicate_of"));
    assert_eq!(told, ("processing".to_owned(), keyed(&path, "one")));
    tokio::time::sleep(Duration::from_secs(5 * 60 + 10)).await;
    assert_eq!(count(&api, "any").await, 1, "another server has taken it over");
    let after = generic(&api, &path, Some("three"), body).await;
    assert_eq!((started(&after).len(), after.text("duplicate_of")), (1, keyed(&path, "one")));
    assert_eq!(count(&api, "any").await, 1);
    api.end().await;
}

async fn server_on(url: &StoreUrl) -> Engine {
    let options = harness::equipped();
    let store = Store::open(url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
    Engine::open(store, options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_that_get_one_body_at_once_start_its_runs_once() {
    let url = harness::postgres("hooks_at_once").await;
    let engine = server_on(&url).await;
    let tenants = harness::two_tenants(&engine).await;
    let one = Api::of(engine, tenants, "hooks_at_once".to_owned()).await;
    let two = one.on(server_on(&url).await);
    apply(&one.engine, one.tenant, ANY).await;
    let path = endpoint(&one, "generic").await;
    let sent = (0..24).map(|number| {
        let (server, path) = (if number % 2 == 0 { &one } else { &two }, &path);
        async move { generic(server, path, Some(&format!("id-{number}")), r#"{"n":1}"#).await }
    });
    let answers = futures::future::join_all(sent).await;
    let told: BTreeSet<String> = answers.iter().flat_map(started).collect();
    assert!(told.len() <= 1, "{told:?}");
    // Whoever has it may still be at it.
    let patience = tokio::time::Instant::now() + Duration::from_mins(1);
    let settled = loop {
        let answer = generic(&two, &path, Some("last"), r#"{"n":1}"#).await;
        if answer.body["status"] == "completed" || tokio::time::Instant::now() > patience {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(started(&settled).len(), 1, "{}", settled.body);
    assert_eq!(count(&one, "any").await, 1);
    two.engine.stop().await;
    two.engine.store().clone().close().await;
    one.end().await;
}
