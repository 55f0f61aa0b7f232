//! Webhooks that come in: judged, stored, started once, and finished by another server if need be.

use axum::body::Body;
use axum::http::Request;
use base64::Engine as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use interlock_core::ids::InboundId;
use interlock_core::json::{Hash, Json};
use interlock_core::time::Millis;
use interlock_core::trigger::Source;
use interlock_store::{BeginDelivery, DeliveryBegun, DeliveryRef, DeliveryRow};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::Duration;

use crate::approvals::Person;
use crate::harness::{Api, ApiResponse};
use crate::numbers::shown_to;
use crate::schedules::apply;

pub const SECRET: &str = "it is a secret to everybody";
const REVIEW: &str = "name: review\non:\n  github:\n    events: pull_request\n    filter: event.action == 'opened'\n    inputs: { number: \"${{ event.pull_request.number }}\" }\ninputs: { number: { type: integer, required: true } }\nsubject: pr-${{ inputs.number }}\nsteps:\n  - id: a\n    wait: { for: 1h }\n";
pub const COUNT: &str = "name: count\non:\n  webhook: { source: github }\nsteps:\n  - id: a\n    transform: seen\n";

pub fn hmac(secret: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

pub async fn endpoint(api: &Api, source: &str) -> String {
    let body = json!({ "name": format!("{source}-main"), "source": source, "secret": SECRET });
    let made = api.post("/webhooks", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body.get("secret"), None, "a secret that was given is not repeated");
    made.text("path")
}

/// Sends as a stranger does: without a key.
pub async fn send(api: &Api, path: &str, body: &str, headers: &[(&str, &str)]) -> ApiResponse {
    let mut request = Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.ask(request.body(Body::from(body.to_owned())).unwrap()).await
}

pub async fn github(api: &Api, path: &str, delivery: &str, body: &Value) -> ApiResponse {
    let text = body.to_string();
    let signature = format!("sha256={}", hex(&hmac(SECRET.as_bytes(), text.as_bytes())));
    let headers =
        [("x-github-delivery", delivery), ("x-github-event", "pull_request"), ("x-hub-signature-256", &*signature)];
    send(api, path, &text, &headers).await
}

/// A delivery that is signed and cannot be read.
pub async fn broken_body(api: &Api, path: &str) -> ApiResponse {
    let signature = format!("sha256={}", hex(&hmac(SECRET.as_bytes(), b"{")));
    let headers =
        [("x-github-delivery", "d-1"), ("x-github-event", "pull_request"), ("x-hub-signature-256", &*signature)];
    send(api, path, "{", &headers).await
}

pub fn pull_request(number: u32, action: &str, head: &str) -> Value {
    let head = json!({ "sha": head });
    json!({ "action": action, "repository": { "id": 1 }, "pull_request": { "number": number, "head": head } })
}

#[tokio::test(start_paused = true)]
async fn a_delivery_starts_every_workflow_that_takes_it_once() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, REVIEW).await;
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(&api, "github").await;
    let opened = pull_request(7, "opened", "abc");
    let first = github(&api, &path, "d-1", &opened).await;
    assert_eq!(first.status, 202, "{}", first.body);
    assert_eq!((&first.body["status"], &first.body["delivery"]), (&json!("completed"), &json!("github:d-1")));
    let runs = first.body["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["workflow"].as_str().unwrap()).collect::<Vec<_>>(), ["count", "review"]);
    let run = runs[1]["run_id"].as_str().unwrap();
    let started = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&started["inputs"], &started["trigger"]["ref"]), (&json!({ "number": 7 }), &json!("github:d-1")));

    let again = github(&api, &path, "d-1", &opened).await;
    assert_eq!((again.status.as_u16(), &again.body), (202, &first.body));
    assert_eq!(again.headers["idempotency-replayed"], "true");

    // The subject is busy: recorded, and answered like any other.
    let busy = github(&api, &path, "d-2", &pull_request(7, "opened", "def")).await;
    assert_eq!((busy.status.as_u16(), busy.body["runs"].as_array().unwrap().len()), (202, 1));
    assert_eq!(
        (&busy.body["skipped"][0]["code"], &busy.body["skipped"][0]["run_id"]),
        (&json!("RUN_SUBJECT_BUSY"), &json!(run))
    );
    let closed = github(&api, &path, "d-3", &pull_request(7, "closed", "abc")).await;
    assert_eq!(closed.body["runs"].as_array().unwrap().len(), 1, "the filter does not take it");
    let log = api.get("/webhooks/github-main/deliveries").await.ok();
    assert_eq!(log["deliveries"].as_array().unwrap().len(), 3);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_starts_nothing_says_what_did_not_fit() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, REVIEW).await;
    let pushes = "name: pushes\non:\n  github: { events: push }\nsteps:\n  - id: a\n    transform: seen\n";
    apply(&api.engine, api.tenant, pushes).await;
    let path = endpoint(&api, "github").await;
    let missed = github(&api, &path, "d-1", &pull_request(7, "closed", "abc")).await;
    let told = |number: usize| {
        let trigger = &missed.body["missed"][number];
        ["workflow", "on", "failed"].map(|field| trigger[field].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(told(0), ["pushes", "github", "event"], "{}", missed.body);
    assert_eq!(told(1), ["review", "github", "filter"], "{}", missed.body);
    let log = api.get("/webhooks/github-main/deliveries").await.ok();
    assert_eq!(log["deliveries"][0]["answer"]["missed"].as_array().unwrap().len(), 2);

    // What starts is found by where it comes from.
    let opened = github(&api, &path, "d-2", &pull_request(7, "opened", "abc")).await;
    let run = opened.body["runs"][0]["run_id"].as_str().unwrap();
    assert_eq!(opened.body.get("missed"), None);
    let labels = api.get(&format!("/runs/{run}")).await.ok()["labels"].clone();
    assert_eq!((&labels["pr"], &labels["head_sha"]), (&json!("7"), &json!("abc")));
    api.end().await;
}

/// docs/reference/workflow.md: a trigger without `inputs`.
#[tokio::test(start_paused = true)]
async fn without_a_mapping_fields_go_to_the_inputs_of_the_same_name() {
    let api = Api::new().await;
    let workflow = "name: named\non:\n  github: { events: pull_request }\ninputs: { action: { type: string, required: true }, other: { type: string } }\nsteps:\n  - id: a\n    transform: seen\n";
    apply(&api.engine, api.tenant, workflow).await;
    let path = endpoint(&api, "github").await;
    let taken = github(&api, &path, "d-1", &pull_request(7, "opened", "abc")).await;
    let run = taken.body["runs"][0]["run_id"].as_str().unwrap_or_else(|| panic!("{}", taken.body)).to_owned();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["inputs"], json!({ "action": "opened", "other": null }));

    // What is required and not in the event is said, and starts nothing.
    let lacking = github(&api, &path, "d-2", &json!({ "pull_request": { "number": 7 } })).await;
    assert_eq!((&lacking.body["runs"], &lacking.body["skipped"][0]["workflow"]), (&json!([]), &json!("named")));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_pull_request_within_seconds_is_one_delivery() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(&api, "github").await;
    // The same, in a body of its own.
    let opened = |telling: u32| {
        let mut body = pull_request(7, "opened", "abc");
        body["telling"] = json!(telling);
        body
    };
    let first = github(&api, &path, "d-1", &opened(1)).await;
    assert_eq!(first.body["runs"].as_array().unwrap().len(), 1);
    tokio::time::sleep(Duration::from_millis(4_900)).await;
    let second = github(&api, &path, "d-2", &opened(2)).await;
    assert_eq!((second.status.as_u16(), &second.body["duplicate_of"]), (202, &json!("github:d-1")));
    assert_eq!(second.body["runs"], first.body["runs"], "it gets the first one's answer");
    counted(&api, "github", &[("new", 1), ("replayed", 1)]).await;
    let another = github(&api, &path, "d-3", &pull_request(7, "opened", "def")).await;
    assert_eq!(another.body["runs"].as_array().unwrap().len(), 1, "another head is another matter");
    tokio::time::sleep(Duration::from_millis(5_100)).await;
    let redelivered = github(&api, &path, "d-2", &opened(2)).await;
    assert_eq!(redelivered.body["duplicate_of"], json!("github:d-1"), "it stays a repeat of the first");
    let later = github(&api, &path, "d-4", &opened(4)).await;
    assert_eq!((later.body["runs"].as_array().unwrap().len(), later.body.get("duplicate_of")), (1, None));

    let body = Request::patch(&path).header("host", "localhost").header("content-type", "application/json");
    let body = body.header("authorization", format!("Bearer {}", api.key)).body(Body::from(r#"{"secondary":false}"#));
    assert_eq!(api.ask(body.unwrap()).await.ok()["secondary"], false);
    let off = github(&api, &path, "d-5", &opened(5)).await;
    assert_eq!((off.body["runs"].as_array().unwrap().len(), off.body.get("duplicate_of")), (1, None));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_not_genuine_leaves_no_trace() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(&api, "github").await;
    let text = pull_request(7, "opened", "abc").to_string();
    let headers = [("x-github-delivery", "d-1"), ("x-github-event", "pull_request")];
    let unsigned = send(&api, &path, &text, &headers).await;
    assert_eq!(unsigned.problem(), (401, "WEBHOOK_SIGNATURE_INVALID"));
    let signature = format!("sha256={}", hex(&hmac(b"another secret", text.as_bytes())));
    let forged = send(&api, &path, &text, &[headers[0], headers[1], ("x-hub-signature-256", &*signature)]).await;
    assert_eq!(forged.problem(), (401, "WEBHOOK_SIGNATURE_INVALID"));
    assert!(!forged.body.to_string().contains(SECRET));
    assert_eq!(broken_body(&api, &path).await.problem(), (400, "WEBHOOK_INVALID"));
    assert_eq!(api.get("/webhooks/github-main/deliveries").await.ok()["deliveries"], json!([]));
    let nowhere = send(&api, "/api/v1/webhooks/whi_000000000000000000000000000000ff", "{}", &[]).await;
    assert_eq!(nowhere.problem(), (401, "WEBHOOK_SIGNATURE_INVALID"), "nobody finds out which addresses there are");
    let shown = api.get("/webhooks").await.ok().to_string() + &api.get("/webhooks/github-main").await.ok().to_string();
    assert!(!shown.contains(SECRET) && !shown.contains("v1:"), "{shown}");
    let elsewhere = api.with_key(&api.other_key);
    assert_eq!(elsewhere.get("/webhooks/github-main").await.problem(), (404, "WEBHOOK_NOT_FOUND"));
    let id = path.rsplit('/').next().unwrap();
    assert_eq!(elsewhere.get(&format!("/webhooks/{id}")).await.problem(), (404, "WEBHOOK_NOT_FOUND"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn slack_is_answered_at_once() {
    let api = Api::new().await;
    let deploy = "name: deploy\non:\n  slack: { command: /deploy, inputs: { what: \"${{ event.text }}\" } }\ninputs: { what: { type: string, required: true } }\nsteps:\n  - id: a\n    transform: ${{ inputs.what }}\n";
    apply(&api.engine, api.tenant, deploy).await;
    let path = endpoint(&api, "slack").await;
    let signed = async |body: &str, kind: &str| {
        let seconds = (api.engine.now().0 / 1_000).to_string();
        let signature = format!("v0={}", hex(&hmac(SECRET.as_bytes(), format!("v0:{seconds}:{body}").as_bytes())));
        let mut request = Request::post(&path).header("content-type", kind);
        request = request.header("x-slack-request-timestamp", seconds).header("x-slack-signature", signature);
        api.raw(request.body(Body::from(body.to_owned())).unwrap()).await
    };
    let text = async |response: axum::response::Response| {
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    };
    let form = "application/x-www-form-urlencoded";
    let command = "token=t&team_id=T1&trigger_id=1.2&command=%2Fdeploy&text=api+v2&user_name=ada";
    let (status, answer) = text(signed(command, form).await).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("ephemeral") && answer.contains("Started deploy: run_"), "{answer}");
    assert_eq!(text(signed(command, form).await).await.1, answer, "a repeat gets the first answer");
    let (_, unknown) = text(signed("team_id=T1&trigger_id=1.3&command=%2Fother&text=", form).await).await;
    assert!(unknown.contains("No workflow takes this command"), "{unknown}");
    assert_eq!(text(signed("ssl_check=1", form).await).await, (200, String::new()));
    let challenge = r#"{"type":"url_verification","challenge":"c-1"}"#;
    assert_eq!(text(signed(challenge, "application/json").await).await, (200, "c-1".into()));
    let runs = api.get("/runs?workflow=deploy").await.ok();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    assert_eq!(runs["runs"][0]["inputs"], json!({ "what": "api v2" }));
    counted(&api, "slack", &[("new", 2), ("replayed", 1)]).await;
    api.end().await;
}

/// What the metrics say of the requests that carried a key, by what became of them.
pub async fn counted(api: &Api, source: &str, expected: &[(&str, u64)]) {
    let (_, numbers) = shown_to(&api.in_charge().await, "text/plain").await;
    for (result, count) in expected {
        let line = format!(r#"interlock_idempotency_hits_total{{source="{source}",result="{result}"}} {count}"#);
        assert!(numbers.lines().any(|told| told == line), "{line} is not in\n{numbers}");
    }
}

/// A sender's mistake counts as that sender's.
#[tokio::test(start_paused = true)]
async fn repeats_are_counted_by_sender_and_result() {
    let api = Api::new().await;
    let path = endpoint(&api, "servicenow").await;
    let record = r#"{"instance":"dev1","sys_id":"abc","sys_mod_count":3}"#;
    for _ in 0..3 {
        assert_eq!(send(&api, &path, record, &[("x-interlock-secret", SECRET)]).await.status, 202);
    }
    let other = record.replace("dev1\"", "dev1\",\"state\":2");
    let other = send(&api, &path, &other, &[("x-interlock-secret", SECRET)]).await;
    assert_eq!(other.problem(), (422, "IDEMPOTENCY_MISMATCH"));
    counted(&api, "servicenow", &[("new", 1), ("replayed", 2), ("mismatch", 1)]).await;
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn servicenow_generic_and_standard_senders_prove_themselves() {
    let api = Api::new().await;
    let any = "name: any\non: webhook\nsteps:\n  - id: a\n    transform: seen\n";
    apply(&api.engine, api.tenant, any).await;
    let servicenow = endpoint(&api, "servicenow").await;
    let record = r#"{"instance":"dev1","table":"incident","sys_id":"abc","sys_mod_count":3}"#;
    let taken = send(&api, &servicenow, record, &[("x-interlock-secret", SECRET)]).await;
    assert_eq!((taken.status.as_u16(), taken.text("delivery")), (202, "servicenow:dev1:abc:3".into()));
    assert_eq!(send(&api, &servicenow, record, &[("x-interlock-secret", "no")]).await.status, 401);

    let generic = endpoint(&api, "generic").await;
    let signature = hex(&hmac(SECRET.as_bytes(), br#"{"id":"e-1"}"#));
    let taken = send(&api, &generic, r#"{"id":"e-1"}"#, &[("x-signature-256", &signature)]).await;
    assert_eq!((taken.status.as_u16(), taken.body["runs"].as_array().unwrap().len()), (202, 1));

    // Neither header is signed: the same body under another id is a repeat of the first.
    let body = r#"{"amount":7}"#;
    let signature = hex(&hmac(SECRET.as_bytes(), body.as_bytes()));
    let first = send(&api, &generic, body, &[("x-signature-256", &signature), ("x-delivery-id", "one")]).await;
    assert_eq!((first.status.as_u16(), first.body["runs"].as_array().unwrap().len()), (202, 1));
    tokio::time::sleep(Duration::from_mins(10)).await;
    let again = send(&api, &generic, body, &[("x-signature-256", &signature), ("x-delivery-id", "two")]).await;
    assert_eq!((again.status.as_u16(), again.text("duplicate_of")), (202, first.text("delivery")));
    assert_eq!(api.get("/runs?workflow=any").await.ok()["runs"].as_array().unwrap().len(), 3, "one each, and no more");

    // A secret that the server made is told once; after a rotation both count for a day.
    let made = api.post("/webhooks", json!({ "name": "std", "source": "standard" })).await;
    let (path, old) = (made.text("path"), made.text("secret"));
    let new = api.post("/webhooks/std/rotate", json!({})).await.text("secret");
    assert_ne!(old, new);
    let signed = async |secret: &str, id: &str| {
        let key = base64::engine::general_purpose::STANDARD.decode(&secret["whsec_".len()..]).unwrap();
        let seconds = (api.engine.now().0 / 1_000).to_string();
        let text = format!("{id}.{seconds}.{{}}");
        let digest = base64::engine::general_purpose::STANDARD.encode(hmac(&key, text.as_bytes()));
        let signature = format!("v1,{digest}");
        let headers = [("webhook-id", id), ("webhook-timestamp", &*seconds), ("webhook-signature", &*signature)];
        send(&api, &path, "{}", &headers).await
    };
    assert_eq!(signed(&old, "m-1").await.status, 202);
    assert_eq!(signed(&new, "m-2").await.status, 202);
    api.end().await;
}

/// A server stores a delivery, starts one of two runs, and dies. Another one finishes it when the lock has run out.
#[tokio::test(start_paused = true)]
async fn a_delivery_that_was_left_is_finished_once() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, REVIEW).await;
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(&api, "github").await;
    let id: InboundId = path.rsplit('/').next().unwrap().parse().unwrap();
    let body = pull_request(7, "opened", "abc");
    let now = api.engine.now();
    let lock_until = now + Millis::from_mins(5);
    let delivery = DeliveryRow {
        at: DeliveryRef { tenant: api.tenant, endpoint: id, key: "github:d-1".into() },
        event: "pull_request".into(),
        payload: Json::of(&body).unwrap(),
        received_at: now,
        retry_at: Some(lock_until),
    };
    let request_hash = Hash::of(body.to_string().as_bytes());
    let begin = BeginDelivery { delivery, source: Source::GitHub, request_hash, signed_body: None, now, lock_until };
    assert_eq!(api.engine.store().write(begin).await.unwrap().begun, DeliveryBegun::Begun(1));

    let meanwhile = github(&api, &path, "d-1", &body).await;
    assert_eq!((meanwhile.status.as_u16(), &meanwhile.body["status"]), (202, &json!("processing")));
    assert_eq!(api.get("/runs").await.ok()["runs"], json!([]));
    tokio::time::sleep(Duration::from_secs(5 * 60 + 10)).await;
    assert_eq!(api.get("/runs").await.ok()["runs"].as_array().unwrap().len(), 2);
    let answer = github(&api, &path, "d-1", &body).await;
    assert_eq!(answer.headers["idempotency-replayed"], "true");
    assert_eq!(answer.body["runs"].as_array().unwrap().len(), 2);
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(api.get("/runs").await.ok()["runs"].as_array().unwrap().len(), 2);
    api.end().await;
}

/// What stands in the way passes, but not before the third try.
#[tokio::test(start_paused = true)]
async fn a_delivery_that_failed_three_times_is_given_up() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, "name: any\non: webhook\nsteps:\n  - id: a\n    task: t\n").await;
    let path = endpoint(&api, "github").await;
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.pending_runs_max = Some(1);
    api.engine.tenants().put(tenant).await.unwrap();
    api.start(json!([crate::harness::task("a")])).await;
    let body = pull_request(7, "opened", "abc");
    assert_eq!(github(&api, &path, "d-1", &body).await.problem(), (429, "TENANT_PENDING_RUNS"));
    tokio::time::sleep(Duration::from_mins(5)).await;
    let given_up = github(&api, &path, "d-1", &body).await;
    assert_eq!(given_up.problem(), (409, "WEBHOOK_FAILED"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_rests_takes_nothing() {
    let api = Api::new().await;
    let path = endpoint(&api, "github").await;
    let change = |method: &str, body: &str| {
        let request = Request::builder().method(method).uri(&path).header("host", "localhost");
        let request = request.header("content-type", "application/json");
        request.header("authorization", format!("Bearer {}", api.key)).body(Body::from(body.to_owned())).unwrap()
    };
    api.ask(change("PATCH", r#"{"paused":true}"#)).await.ok();
    assert_eq!(github(&api, &path, "d-1", &json!({})).await.problem(), (404, "WEBHOOK_NOT_FOUND"));
    api.ask(change("PATCH", r#"{"paused":false}"#)).await.ok();
    assert_eq!(github(&api, &path, "d-1", &json!({})).await.status, 202);
    assert_eq!(api.ask(change("DELETE", "")).await.status, 204);
    assert_eq!(github(&api, &path, "d-1", &json!({})).await.problem(), (401, "WEBHOOK_SIGNATURE_INVALID"));
    let weak = api.post("/webhooks", json!({ "name": "a", "source": "generic", "secret": "short" })).await;
    assert_eq!(weak.problem(), (422, "INPUT_INVALID"));
    api.end().await;
}

/// A person who knows an address's secret could have sent what comes with it.
#[tokio::test(start_paused = true)]
async fn whoever_has_held_the_secret_does_not_decide_on_what_it_starts() {
    let api = Api::new().await;
    let roles = || json!(["admin", "approver"]);
    let ada = Person::new(&api, "ada", roles(), json!([])).await;
    let dan = Person::new(&api, "dan", roles(), json!([])).await;
    let cyd = Person::new(&api, "cyd", roles(), json!([])).await;
    apply(&api.engine, api.tenant, "name: asks\non: webhook\nsteps:\n  - { id: gate, approval: { message: ok? } }\n")
        .await;
    let made = ada.post("/webhooks", json!({ "name": "mine", "source": "generic", "secret": SECRET })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    dan.post("/webhooks/mine/rotate", json!({ "secret": SECRET })).await.ok();
    let body = r#"{"id":"e-1"}"#;
    let signature = hex(&hmac(SECRET.as_bytes(), body.as_bytes()));
    let taken = send(&api, &made.text("path"), body, &[("x-signature-256", &signature)]).await;
    let run = taken.body["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let path = format!("/runs/{run}/approve");
    for holder in [&ada, &dan] {
        assert_eq!(holder.post(&path, json!({ "approve": true })).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    }
    cyd.post(&path, json!({ "approve": true })).await.ok();
    api.end().await;
}
