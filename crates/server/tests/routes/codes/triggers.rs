//! Schedules, and webhooks that come in.

use serde_json::{Value, json};

use super::{CodeSource, table};
use crate::harness::{Api, ApiResponse, task};
use crate::schedules::apply;
use crate::webhooks::{COUNT, broken_body, endpoint, github, pull_request, send};

async fn name_twice(api: &Api) -> ApiResponse {
    apply(&api.engine, api.tenant, COUNT).await;
    let new = json!({ "name": "nightly", "workflow": "count", "cron": "0 3 * * *" });
    api.post("/schedules", new.clone()).await.ok();
    api.post("/schedules", new).await
}

async fn unsigned(api: &Api) -> ApiResponse {
    let path = endpoint(api, "github").await;
    send(api, &path, "{}", &[("x-github-delivery", "d-1"), ("x-github-event", "push")]).await
}

async fn unreadable(api: &Api) -> ApiResponse {
    let path = endpoint(api, "github").await;
    broken_body(api, &path).await
}

/// What stands in the way passes, but not before the third try.
async fn given_up(api: &Api) -> ApiResponse {
    apply(&api.engine, api.tenant, COUNT).await;
    let path = endpoint(api, "github").await;
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.pending_runs_max = Some(1);
    api.engine.tenants().put(tenant).await.unwrap();
    api.start(json!([task("a")])).await;
    let body = pull_request(7, "opened", "abc");
    for _ in 0..3 {
        github(api, &path, "d-1", &body).await;
    }
    github(api, &path, "d-1", &body).await
}

/// A workflow whose trigger makes its inputs from a field that the event does not have.
async fn unmade(api: &Api) -> CodeSource {
    let source = "name: unmade\non: { signal: { type: disk.gone, inputs: { host: \"${{ event.payload.nothing.at.all }}\" } } }\ninputs: { host: { type: string, required: true } }\nsteps:\n  - id: a\n    transform: seen\n";
    apply(&api.engine, api.tenant, source).await;
    let sent = api.post("/signals", json!({ "type": "disk.gone", "key": "db-1", "payload": {} })).await.ok();
    CodeSource::InAnswer(text(&sent["skipped"][0]["code"]))
}

/// The tenant is disabled between the check of a request's credential and its start.
async fn disabled(api: &Api) -> CodeSource {
    let start = interlock_engine::StartWorkflow::new(
        api.other_tenant,
        "count".to_owned(),
        interlock_core::json::Json::trusted("{}"),
    );
    apply(&api.engine, api.other_tenant, COUNT).await;
    let mut tenant = api.engine.store().tenant(api.other_tenant).await.unwrap().unwrap();
    tenant.disabled_at = Some(api.engine.now());
    api.engine.tenants().put(tenant).await.unwrap();
    CodeSource::Engine(api.engine.runs().start_workflow(start).await.unwrap_err().code().to_owned())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

table! { TABLE:
    "NAME_TAKEN" => |api| name_twice(api).await,
    "WEBHOOK_NOT_FOUND" => |api| api.get("/webhooks/nobody").await,
    "WEBHOOK_SIGNATURE_INVALID" => |api| unsigned(api).await,
    "WEBHOOK_INVALID" => |api| unreadable(api).await,
    "WEBHOOK_FAILED" => |api| given_up(api).await,
    "SLACK_NOT_CONNECTED" => |api| api.get("/slack").await,
    "SLACK_LINK_NOT_FOUND" => |api| api.send("DELETE", "/api/v1/slack/links/nobody", json!({})).await,
    "TRIGGER_INVALID" => |api| unmade(api).await,
    "TENANT_DISABLED" => |api| disabled(api).await,
}
