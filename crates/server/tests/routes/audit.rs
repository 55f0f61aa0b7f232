//! The audit log and the evidence of runs, over HTTP.

use std::time::Duration;

use interlock_core::tenant::identity::Role;
use interlock_evidence::PublicKey;
use interlock_evidence::export::{LogCopy, LoggedEntry};
use interlock_evidence::verify_bundle::verify_bundle;
use interlock_evidence::verify_log::{Expected, VerifiedLog, verify_log};
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, completed, task};
use crate::set_up::canceled;

/// What policy allows in every run has no decision in the run: its evidence names the rules all the same.
#[tokio::test(start_paused = true)]
async fn evidence_names_the_rules_under_which_a_plain_step_and_its_effect_were_let_happen() {
    let api = Api::new().await;
    let session = api.register().await;
    let mut charge = task("a");
    charge["effect"] = json!("unsafe");
    let run = api.start(json!([task("b"), charge])).await;
    for _ in 0..2 {
        let assignment = api.poll(&session).await;
        api.report(&session, &assignment, completed(json!(1))).await.ok();
    }
    let hash = api.get("/policy").await.ok()["active_hash"].clone();
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
    assert_eq!(decided["decisions"], json!([]), "the leave stands for every run");
    let bundle = sealed(&api, &format!("/runs/{run}/evidence")).await.ok();
    let key = api.get("/audit/key").await.ok();
    let pem = PublicKey::parse(key["public_key"].as_str().unwrap()).unwrap();
    let report = verify_bundle(&bundle.to_string(), &pem);
    assert!(report.is_complete(), "{:?} {:?}", report.integrity, report.completeness);
    let record = report.statement.unwrap().predicate.record;
    let told: Vec<_> = record.leave.iter().flatten().map(|leave| (leave.position, leave.receipt.is_some())).collect();
    assert_eq!(told, [(0, false), (1, false), (1, true)], "each step, and the effect of the second");
    assert!(record.leave.iter().flatten().all(|leave| hash == json!(leave.bundle)), "{:?} under {hash}", record.leave);
    let receipts = api.get(&format!("/runs/{run}/receipts")).await.ok();
    let id = receipts["receipts"][0]["id"].as_str().unwrap();
    assert_eq!(receipts["bundles"][id], hash, "{receipts}");
    api.end().await;
}

/// Asks until what was committed is in the log.
async fn sealed(api: &Api, path: &str) -> ApiResponse {
    for _ in 0..200 {
        let answer = api.get(path).await;
        if answer.status != 503 {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{path} is never sealed");
}

fn kinds(page: &Value) -> Vec<&str> {
    let entries = page["entries"].as_array().unwrap();
    entries.iter().filter_map(|logged| logged["entry"]["types"][0].as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn evidence_verifies_with_the_key_that_the_api_gives() {
    let api = Api::new().await;
    let run = canceled(&api).await;
    let bundle = sealed(&api, &format!("/runs/{run}/evidence")).await;
    let sha256 = bundle.headers["interlock-sha256"].clone();
    let bundle = bundle.ok();
    let key = api.get("/audit/key").await.ok();
    let pem = PublicKey::parse(key["public_key"].as_str().unwrap()).unwrap();
    assert_eq!(PublicKey::parse(key["verifier_key"].as_str().unwrap()).unwrap().bytes, pem.bytes);
    let report = verify_bundle(&bundle.to_string(), &pem);
    assert!(report.is_complete(), "{:?} {:?}", report.integrity, report.completeness);
    let page = api.get(&format!("/runs/{run}/evidence?format=html")).await;
    assert_eq!(page.headers["interlock-sha256"], sha256);
    assert!(page.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
    assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/html"));
    assert_eq!(api.get("/runs/run_000000000000000000000000000000ff/evidence").await.problem(), (404, "RUN_NOT_FOUND"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_log_verifies_for_everybody_and_shows_people_to_admins() {
    let api = Api::new().await;
    let new = NewKey::new(api.tenant, "watcher", [Role::Viewer].into_iter().collect());
    let viewer = api.with_key(&api.new_key(new).await);
    let run = canceled(&api).await;
    sealed(&api, &format!("/runs/{run}/evidence")).await.ok();
    let found = api.get("/audit?type=key.created&order=newest").await.ok();
    assert!(kinds(&found).contains(&"key.created"), "{found}");
    assert!(found.to_string().contains("watcher"));
    let found = viewer.get("/audit?type=key.created&order=newest").await.ok();
    assert!(!found.to_string().contains("watcher"), "{found}");
    let of_run = viewer.get(&format!("/audit?run={run}")).await.ok();
    assert!(of_run["entries"][0]["opened"]["details"].is_string(), "{of_run}");

    let head = viewer.get("/audit/checkpoint").await.ok();
    let key = PublicKey::parse(viewer.get("/audit/key").await.ok()["public_key"].as_str().unwrap()).unwrap();
    let mut copy = LogCopy { checkpoints: vec![head["checkpoint"].as_str().unwrap().to_owned()], ..LogCopy::default() };
    let mut from = json!(0);
    while !from.is_null() {
        let page = viewer.get(&format!("/audit?from={from}&limit=2")).await.ok();
        for logged in page["entries"].as_array().unwrap() {
            copy.entries.push(serde_json::from_value::<LoggedEntry>(logged.clone()).unwrap());
        }
        from = page["next"].clone();
    }
    let verified = verify_log(&copy, Expected::default(), &key).unwrap();
    assert!(verified.closed > 0 && verified.opened > 0, "{verified:?}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_of_one_workspace_does_not_see_the_log() {
    let api = Api::new().await;
    let new = NewKey {
        workspace: Some("ops".into()),
        ..NewKey::new(api.tenant, "ops", [Role::Operator].into_iter().collect())
    };
    let confined = api.with_key(&api.new_key(new).await);
    for path in ["/audit", "/audit/checkpoint"] {
        assert_eq!(confined.get(path).await.problem(), (403, "PERMISSION_DENIED"));
    }
    let run = api.start(json!([task("a")])).await;
    assert_eq!(confined.get(&format!("/runs/{run}/evidence")).await.problem(), (404, "RUN_NOT_FOUND"));
    api.end().await;
}

/// The log as an auditor copies and verifies it.
async fn verified(api: &Api) -> VerifiedLog {
    let head = api.get("/audit/checkpoint").await.ok();
    let key = PublicKey::parse(api.get("/audit/key").await.ok()["public_key"].as_str().unwrap()).unwrap();
    let mut copy = LogCopy { checkpoints: vec![head["checkpoint"].as_str().unwrap().to_owned()], ..LogCopy::default() };
    let page = api.get("/audit?from=0&limit=500").await.ok();
    for logged in page["entries"].as_array().unwrap() {
        copy.entries.push(serde_json::from_value::<LoggedEntry>(logged.clone()).unwrap());
    }
    verify_log(&copy, Expected::default(), &key).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_the_log_tells_of_a_person_is_erased_by_an_admin_once_and_the_log_still_verifies() {
    let api = Api::new().await;
    api.post("/users", json!({ "name": "ann", "roles": ["viewer"] })).await.ok();
    api.post("/users", json!({ "name": "bob", "roles": ["viewer"] })).await.ok();
    let run = canceled(&api).await;
    sealed(&api, &format!("/runs/{run}/evidence")).await.ok();
    while !api.get("/audit?type=user.created").await.ok().to_string().contains("bob") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let before = verified(&api).await;
    let erase = json!({ "person": "ann", "reason": "she asked for it" });

    for role in [Role::Viewer, Role::Operator, Role::Approver, Role::Worker] {
        let key = api.new_key(NewKey::new(api.tenant, "no", [role].into_iter().collect())).await;
        let refused = api.with_key(&key).post("/audit/erasures", erase.clone()).await;
        assert_eq!(refused.problem(), (403, "PERMISSION_DENIED"), "{role}");
    }
    for wrong in [json!({ "person": "ann", "reason": " " }), json!({ "person": "", "reason": "x" })] {
        assert_eq!(api.post("/audit/erasures", wrong).await.problem(), (422, "INPUT_INVALID"));
    }
    let foreign = api.with_key(&api.other_key).post("/audit/erasures", erase.clone()).await.ok();
    assert_eq!(foreign["erased"], 0, "another tenant's log is another log");

    let erased = api.post("/audit/erasures", erase.clone()).await.ok();
    assert_eq!((&erased["erased"], &erased["next"]), (&json!(1), &Value::Null));
    let again = api.post("/audit/erasures", erase).await.ok();
    assert_eq!(again["erased"], 0, "what is erased is not erased again");
    let shown = api.get("/audit?type=user.created").await.ok().to_string();
    assert!(!shown.contains("ann") && shown.contains("bob"), "{shown}");
    while kinds(&api.get("/audit?type=audit.erased").await.ok()).is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let noted = api.get("/audit?type=audit.erased").await.ok();
    assert_eq!(kinds(&noted).len(), 1, "noted once: {noted}");
    assert!(noted.to_string().contains("she asked for it") && !noted.to_string().contains("ann\\\""), "{noted}");
    let after = verified(&api).await;
    assert_eq!(after.closed, before.closed + 1);
    api.end().await;
}
