//! Runs over time.

use std::time::Duration;

use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use crate::harness::{Api, completed, failed, plan, task};

/// The sum of a field over all spans.
fn sum(stats: &Value, field: &str) -> u64 {
    stats["spans"].as_array().unwrap().iter().map(|span| span[field].as_u64().unwrap()).sum()
}

fn last<'a>(stats: &'a Value, field: &str) -> &'a Value {
    &stats["spans"].as_array().unwrap().last().unwrap()[field]
}

async fn what_began_and_ended(api: &Api) {
    let idle = api.get("/stats").await.ok();
    assert_eq!((sum(&idle, "started"), sum(&idle, "open"), &idle["whole"]), (0, 0, &json!(true)), "{idle}");

    let gate = json!([{ "key": "sure", "kind": "approval", "message": "Delete it?" }, task("a")]);
    let asked = json!({ "plan": plan(gate), "subject": "T-1", "labels": { "team": "sre" } });
    let asked = api.post("/runs", asked).await.text("run_id");
    let session = api.register().await;
    for outcome in [completed(json!(1)), completed(json!(2)), failed("NO")] {
        api.start(json!([task("a")])).await;
        let assignment = api.poll(&session).await;
        api.report(&session, &assignment, outcome).await.ok();
    }
    let stats = api.get("/stats").await.ok();
    let told = ["started", "succeeded", "failed", "canceled"].map(|field| sum(&stats, field));
    assert_eq!(told, [4, 2, 1, 0], "{stats}");
    assert_eq!((last(&stats, "open"), last(&stats, "approvals_open")), (&json!(1), &json!(1)), "{stats}");
    let spans = stats["spans"].as_array().unwrap();
    assert!(spans.len() <= 41, "{stats}");
    let span = stats["span_ms"].as_i64().unwrap();
    assert_eq!(stats["from"].as_i64().unwrap() % span, 0, "{stats}");
    assert!(spans.windows(2).all(|two| two[1]["from"].as_i64().unwrap() - two[0]["from"].as_i64().unwrap() == span));

    for (query, started, approvals) in [
        ("subject=T-1", 1, 1),
        ("label=team:sre", 1, 1),
        ("label=team:ops", 0, 0),
        ("workflow=demo", 4, 1),
        ("workflow=other", 0, 0),
        ("trigger=api", 4, 1),
        ("workspace=default", 4, 1),
        ("workspace=blue", 0, 0),
    ] {
        let found = api.get(&format!("/stats?{query}")).await.ok();
        assert_eq!(sum(&found, "started"), started, "{query}: {found}");
        assert_eq!(last(&found, "approvals_open"), &json!(approvals), "{query}: {found}");
    }

    api.post(&format!("/runs/{asked}/cancel"), json!({ "reason": "seen" })).await.ok();
    let stats = api.get("/stats?span_ms=3600000").await.ok();
    assert_eq!((sum(&stats, "canceled"), last(&stats, "open")), (1, &json!(0)), "{stats}");
    assert_eq!(last(&stats, "approvals_open"), &json!(0), "{stats}");

    for wrong in ["span_ms=999", "span_ms=1000", "from=9000000000000", "from=5&before=5", "workflow="] {
        assert_eq!(api.get(&format!("/stats?{wrong}")).await.problem(), (422, "INPUT_INVALID"), "{wrong}");
    }
    for wrong in [
        "span_ms=31622400001",
        "span_ms=18446744073709551615",
        "span_ms=-1",
        "state=failed",
        "from=yesterday",
        "label=team",
    ] {
        assert_eq!(api.get(&format!("/stats?{wrong}")).await.problem(), (400, "REQUEST_INVALID"), "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn runs_are_counted_over_time() {
    let api = Api::new().await;
    what_began_and_ended(&api).await;
    api.end().await;
}

#[tokio::test]
async fn runs_are_counted_over_time_on_postgresql() {
    let api = Api::on_postgres("stats").await;
    what_began_and_ended(&api).await;
    api.end().await;
}

/// What began before everything that is counted is still open.
#[tokio::test(start_paused = true)]
async fn a_run_that_began_long_ago_is_open_in_every_span() {
    let api = Api::new().await;
    api.start(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }])).await;
    tokio::time::advance(Duration::from_hours(30)).await;
    let now = api.get("/status").await.ok()["at"].as_i64().unwrap();
    let stats = api.get(&format!("/stats?from={}&span_ms=600000", now - 3_600_000)).await.ok();
    let spans = stats["spans"].as_array().unwrap();
    assert!(spans.len() >= 6 && spans.iter().all(|span| span["open"] == 1), "{stats}");
    assert_eq!(sum(&stats, "started"), 0, "{stats}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_confined_key_counts_its_own_workspace() {
    let api = Api::new().await;
    let mut new = NewKey::new(api.tenant, "confined", Role::ALL.iter().copied().collect());
    new.workspace = Some("red".into());
    let red = api.with_key(&api.new_key(new).await);
    for workspace in ["blue", "blue", "red"] {
        api.post("/runs", json!({ "plan": plan(json!([task("a")])), "workspace": workspace })).await.ok();
    }
    assert_eq!(sum(&api.get("/stats").await.ok(), "started"), 3);
    assert_eq!(sum(&red.get("/stats").await.ok(), "started"), 1);
    assert_eq!(red.get("/stats?workspace=blue").await.problem(), (422, "INPUT_INVALID"));
    api.end().await;
}
