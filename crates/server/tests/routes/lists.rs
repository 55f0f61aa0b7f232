//! Finding runs, and who waits for what.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use interlock_core::json::Json;
use interlock_core::tenant::identity::Role;
use interlock_engine::payloads::Objects;
use interlock_engine::{EncodedPlan, StartRun};
use interlock_server::identity::NewKey;
use interlock_store::Faults;
use serde_json::{Value, json};

use crate::harness::{Api, engine_under, plan, task};

fn ids(list: &Value) -> Vec<&str> {
    list["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_are_found_by_everything_they_have_in_common() {
    let api = Api::new().await;
    let body = |labels: Value| json!({ "plan": plan(json!([task("a")])), "labels": labels });
    let both = api.post("/runs", body(json!({ "team": "sales", "region": "eu" }))).await.text("run_id");
    tokio::time::advance(Duration::from_mins(2)).await;
    let one = api.post("/runs", body(json!({ "team": "sales", "region": "us" }))).await.text("run_id");
    let list = async |query: &str| api.get(&format!("/runs?{query}")).await.ok();

    assert_eq!(ids(&list("label=team:sales").await), [one.as_str(), both.as_str()]);
    assert_eq!(ids(&list("label=team:sales&label=region:eu").await), [both.as_str()]);
    assert_eq!(ids(&list("label=team:sales&label=region:asia").await), Vec::<&str>::new());
    let created = api.get(&format!("/runs/{one}")).await.ok()["created_at"].as_i64().unwrap();
    assert_eq!(ids(&list(&format!("created_from={created}")).await), [one.as_str()]);
    assert_eq!(ids(&list(&format!("created_before={created}")).await), [both.as_str()]);
    assert_eq!(ids(&list("trigger=api").await).len(), 2);
    assert_eq!(ids(&list("trigger=schedule").await).len(), 0);

    let first = api.get("/runs?label=team:sales&limit=1").await;
    let link = first.headers["link"].to_str().unwrap().to_owned();
    assert!(
        link.starts_with("</api/v1/runs?label=team:sales&limit=1&after=run_") && link.ends_with("; rel=\"next\""),
        "{link}"
    );
    let next = link.trim_start_matches("</api/v1").split('>').next().unwrap().to_owned();
    assert_eq!(ids(&api.get(&next).await.ok()), [both.as_str()]);

    for odd in ["state=odd", "limit=x", "after=7", "label=x", "colour=red", "created_from=yesterday"] {
        assert_eq!(api.get(&format!("/runs?{odd}")).await.problem(), (400, "REQUEST_INVALID"), "{odd}");
    }
    assert_eq!(api.get("/runs?workflow=").await.problem(), (422, "INPUT_INVALID"));
    let reserved = api.post("/runs", body(json!({ "input.order": "1" }))).await;
    assert_eq!(reserved.problem(), (422, "INPUT_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn declared_inputs_and_triggers_are_searchable() {
    let api = Api::new().await;
    let plan: interlock_core::plan::Plan = serde_json::from_value(plan(json!([task("a")]))).unwrap();
    let mut request = StartRun::new(api.tenant, EncodedPlan::new(plan).unwrap(), Json::trusted(r#"{"order":"o-1"}"#));
    request.trigger.kind = "schedule".into();
    request.searchable = [("order".to_owned(), "o-1".to_owned())].into();
    request.searchable.insert("note".to_owned(), "long ".repeat(100));
    let run = api.engine.runs().start(request).await.unwrap().run.to_string();
    for query in ["input=order:o-1", "trigger=schedule", "trigger=schedule&input=order:o-1&state=pending"] {
        let list = api.get(&format!("/runs?{query}")).await.ok();
        assert_eq!(ids(&list), [run.as_str()], "{query}");
        assert_eq!(list["runs"][0]["searchable"], json!({ "order": "o-1" }));
        assert_eq!(list["runs"][0]["labels"], json!({}));
    }
    assert_eq!(ids(&api.get("/runs?input=order:o-2").await.ok()).len(), 0);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_what() {
    let api = Api::new().await;
    let waiting = plan(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]));
    let mut runs = Vec::new();
    for subject in ["INC-1", "INC-2", "INC-3"] {
        runs.push(api.post("/runs", json!({ "plan": waiting, "subject": subject })).await.text("run_id"));
    }
    let one = api.get("/waits?type=go&key=INC-2").await.ok();
    assert_eq!(one["waits"].as_array().unwrap().len(), 1);
    assert_eq!((&one["waits"][0]["run_id"], &one["waits"][0]["key"]), (&json!(runs[1]), &json!("INC-2")));
    assert_eq!(one["waits"][0]["step"], "w", "the step by its key");
    let mut seen = Vec::new();
    let mut path = "/waits?limit=2".to_owned();
    loop {
        let page = api.get(&path).await.ok();
        seen.extend(page["waits"].as_array().unwrap().iter().map(|wait| wait["run_id"].as_str().unwrap().to_owned()));
        let Some(after) = page["next_after"].as_str() else { break };
        path = format!("/waits?limit=2&after={after}");
    }
    assert_eq!(seen, runs);
    assert_eq!(api.get("/waits?type=stop").await.ok()["waits"], json!([]));
    assert_eq!(api.get("/waits?key=INC-1").await.problem(), (400, "REQUEST_INVALID"));
    assert_eq!(api.get("/waits?after=zz").await.problem(), (400, "REQUEST_INVALID"));
    assert_eq!(api.get(&format!("/runs/{}/receipts", runs[0])).await.ok(), json!({ "receipts": [] }));
    assert_eq!(api.get("/runs/run_000000000000000000000000000000ff/receipts").await.problem(), (404, "RUN_NOT_FOUND"));
    api.end().await;
}

/// Counts the reads of the store.
#[derive(Default)]
struct CountedReads(AtomicU64);

impl Faults for CountedReads {
    fn before_read(&self) -> BoxFuture<'static, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::ready(()).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_of_waits_costs_no_read_for_each() {
    let reads = Arc::new(CountedReads::default());
    let (engine, tenants, database) = engine_under(reads.clone(), Objects::memory()).await;
    let api = Api::of(engine, tenants, database).await;
    let waiting = plan(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]));
    for subject in 0..30 {
        api.post("/runs", json!({ "plan": waiting, "subject": format!("INC-{subject}") })).await.ok();
    }
    let cost = async |limit: usize| {
        let before = reads.0.load(Ordering::Relaxed);
        let page = api.get(&format!("/waits?limit={limit}")).await.ok();
        let waits = page["waits"].as_array().unwrap();
        assert!(waits.len() == limit && waits.iter().all(|wait| wait["step"] == "w"), "{page}");
        reads.0.load(Ordering::Relaxed) - before
    };
    let (one, all) = (cost(1).await, cost(30).await);
    assert!(all < one + 10, "a page of one costs {one} reads, a page of thirty {all}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_confined_key_sees_only_its_workspaces_waits_and_jobs() {
    let api = Api::new().await;
    let mut new = NewKey::new(api.tenant, "confined", Role::ALL.iter().copied().collect());
    new.workspace = Some("red".into());
    let red = api.with_key(&api.new_key(new).await);
    let steps = json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]);
    let start =
        |workspace: &str| json!({ "plan": plan(steps.clone()), "workspace": workspace, "labels": { "x": "y" } });
    let ours = api.post("/runs", start("red")).await.text("run_id");
    api.post("/runs", start("blue")).await.ok();
    assert_eq!(api.get("/waits").await.ok()["waits"].as_array().unwrap().len(), 2);
    for query in ["", "?type=go", &format!("?type=go&key={ours}")] {
        let waits = red.get(&format!("/waits{query}")).await.ok();
        assert_eq!(waits["waits"].as_array().unwrap().len(), 1, "{query}");
        assert_eq!(waits["waits"][0]["run_id"], json!(ours));
    }

    let job = |count: u32, filter: Value| json!({ "action": "resume", "filter": filter, "expected_count": count, "reason": "r" });
    let all = json!({ "labels": { "x": "y" } });
    let theirs = api.post("/bulk", job(2, all.clone())).await.text("job_id");
    let own = red.post("/bulk", job(1, all)).await.text("job_id");
    let blue = json!({ "labels": { "x": "y" }, "workspace": "blue" });
    assert_eq!(red.post("/bulk", job(1, blue)).await.problem(), (422, "INPUT_INVALID"));
    let seen = red.get("/bulk").await.ok();
    let seen: Vec<_> = seen["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap()).collect();
    assert_eq!(seen, [&own]);
    for path in ["", "/failures"] {
        assert_eq!(red.get(&format!("/bulk/{theirs}{path}")).await.problem(), (404, "BULK_NOT_FOUND"));
        red.get(&format!("/bulk/{own}{path}")).await.ok();
    }
    let both = api.get("/bulk").await.ok();
    assert_eq!(both["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(api.get("/runs?workspace=blue").await.ok()["runs"].as_array().unwrap().len(), 1);
    api.end().await;
}

/// Every parameter of every route that reads, taken from the published description: a value of another form, a
/// misspelling and a repetition are refused, and the refusal names the parameter and what it looks like.
#[tokio::test(start_paused = true)]
async fn every_query_says_what_is_wrong_with_it() {
    let api = Api::new().await;
    let run = api.post("/runs", json!({ "plan": plan(json!([task("a")])) })).await.text("run_id");
    let document = interlock_server::openapi::document();
    let document = serde_json::to_value(&document).unwrap();
    let mut met = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(short) = path.strip_prefix("/api/v1") else { continue };
        let parameters = operations["get"]["parameters"].as_array().cloned().unwrap_or_default();
        let query: Vec<_> = parameters.iter().filter(|parameter| parameter["in"] == "query").collect();
        let is_list = !query.is_empty() || ["/tenants", "/webhooks", "/webhook-endpoints"].contains(&short);
        if operations.get("get").is_none() || !is_list {
            continue;
        }
        let address = short.replace("{run}", &run).replace("{session_id}", &run);
        let address = address.replace("{job}", &format!("job_{:032x}", 1));
        let refused = async |query: &str| {
            let answer = api.get(&format!("{address}?{query}")).await;
            assert_eq!(answer.problem(), (400, "REQUEST_INVALID"), "{short}?{query}");
            answer.text("detail")
        };
        let detail = refused("limti=1").await;
        assert!(detail.contains("no parameter `limti`"), "{short}: {detail}");
        for parameter in query {
            let name = parameter["name"].as_str().unwrap();
            let schema = &parameter["schema"];
            let named = schema["$ref"].as_str().and_then(|named| named.rsplit('/').next()).unwrap_or_default();
            let form = match (schema["type"].as_str(), named) {
                (Some("integer"), _) => "a whole number, such as",
                (Some("boolean"), _) => "`true` or `false`",
                (_, "Timestamp") => "an instant in Unix milliseconds, such as",
                (_, "Millis") => "a span in milliseconds, such as",
                (Some("array"), _) if name == "state" => "expected",
                (Some("array"), _) => "`name:value`",
                // States list what there is, and ids say what they look like.
                (None, _) => "expected",
                _ if ["since", "after"].contains(&name)
                    && !["/schedules", "/workflows", "/slack/links"].contains(&short) =>
                {
                    "is no "
                }
                _ => continue,
            };
            let detail = refused(&format!("{name}=!")).await;
            assert!(detail.contains(name) && detail.contains(form), "{short}?{name}: {detail}");
            if schema["type"] != "array" {
                let detail = refused(&format!("{name}=1&{name}=1")).await;
                assert!(detail.contains(name), "{short}?{name}: {detail}");
            }
            met.push(format!("{short} {name}"));
        }
    }
    assert!(met.len() > 30, "{met:?}");
    api.end().await;
}
