//! Requests that cannot be understood, or name what is not there.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use super::table;
use crate::harness::{Api, ApiResponse, plan, task};
use crate::policy::{BY_NAME, CONTRADICTS, put_in_force};

async fn as_role(api: &Api, role: Role) -> Api {
    api.with_key(&api.new_key(NewKey::new(api.tenant, "one role", [role].into_iter().collect())).await)
}

async fn apply(api: &Api, name: &str) {
    api.post("/workflows", json!({ "source": source(name) })).await.ok();
}

fn source(name: &str) -> String {
    format!("name: {name}\nsteps:\n  - {{ id: a, task: a }}\n")
}

async fn put(api: &Api, path: &str, body: Value, header: Option<(&str, &str)>) -> ApiResponse {
    let mut request = Request::put(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, "application/json");
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn run_of_nobody(api: &Api) -> ApiResponse {
    api.get("/runs/run_000000000000000000000000000000ff").await
}

async fn to_another_host(api: &Api) -> ApiResponse {
    let request = Request::get("/api/v1/runs").header(header::HOST, "evil.example.org");
    api.ask(request.body(Body::empty()).unwrap()).await
}

async fn as_a_form(api: &Api) -> ApiResponse {
    let request = Request::post("/api/v1/runs")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, "text/plain");
    api.ask(request.body(Body::from("{}")).unwrap()).await
}

async fn too_often(api: &Api) -> ApiResponse {
    let mut new = NewKey::new(api.tenant, "slow", [Role::Viewer].into_iter().collect());
    new.requests_per_min = Some(1);
    let slow = api.with_key(&api.new_key(new).await);
    for _ in 0..100 {
        let answer = slow.get("/runs").await;
        if answer.status != 200 {
            return answer;
        }
    }
    panic!("nobody minds");
}

async fn plain_request_for_a_socket(api: &Api) -> ApiResponse {
    let request = Request::get("/ws/feed")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    api.ask(request.body(Body::empty()).unwrap()).await
}

async fn changed_policy(api: &Api) -> ApiResponse {
    put_in_force(api, BY_NAME).await;
    api.send("PATCH", "/api/v1/policy", json!({ "active": 0, "revision": 1 })).await
}

/// A step on which the policy could not decide, and cannot when it is asked about again.
async fn undecided_retry(api: &Api) -> ApiResponse {
    put_in_force(api, CONTRADICTS).await;
    let steps = json!([{ "key": "a", "kind": "task", "handler": "contradicts" }]);
    let run = api.post("/runs", json!({ "plan": plan(steps) })).await.text("run_id");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "paused");
    api.post(&format!("/runs/{run}/retry"), json!({})).await
}

async fn disabled_workflow(api: &Api) -> ApiResponse {
    apply(api, "resting").await;
    api.post("/workflows/resting/disable", json!({})).await.ok();
    api.post("/runs", json!({ "workflow": "resting" })).await
}

async fn changed_workflow(api: &Api) -> ApiResponse {
    apply(api, "w").await;
    put(api, "/workflows/w", json!({ "source": source("w") }), Some(("if-match", "\"99\""))).await
}

async fn revoked_key(api: &Api) -> ApiResponse {
    let key = api.post("/keys", json!({ "name": "spare", "roles": ["viewer"] })).await.text("key");
    api.send("DELETE", &format!("/api/v1/keys/{key}"), json!({})).await.ok();
    api.post(&format!("/keys/{key}/rotate"), json!({})).await
}

async fn twice(api: &Api, path: &str, body: Value) -> ApiResponse {
    api.post(path, body.clone()).await.ok();
    api.post(path, body).await
}

async fn payload_of_another(api: &Api) -> ApiResponse {
    let run = api.start(json!([task("a")])).await;
    api.get(&format!("/runs/{run}/payloads/{}", "0".repeat(64))).await
}

async fn full_of_pending_runs(api: &Api) -> ApiResponse {
    let mut tenant = api.engine.store().tenant(api.tenant).await.unwrap().unwrap();
    tenant.pending_runs_max = Some(1);
    api.engine.tenants().put(tenant).await.unwrap();
    api.start(json!([task("a")])).await;
    api.post("/runs", json!({ "plan": plan(json!([task("a")])) })).await
}

table! { TABLE:
    "UNAUTHORIZED" => |api| api.with_key("ilk_nobody").get("/runs").await,
    "PERMISSION_DENIED" => |api| as_role(api, Role::Viewer).await.get("/keys").await,
    "HOST_REFUSED" => |api| to_another_host(api).await,
    "RATE_LIMITED" => |api| too_often(api).await,
    "ROUTE_NOT_FOUND" => |api| api.get("/nothing").await,
    "METHOD_NOT_ALLOWED" => |api| api.get("/signals").await,
    "CONTENT_TYPE_INVALID" => |api| as_a_form(api).await,
    "REQUEST_INVALID" => |api| api.post("/runs", json!({ "lables": {} })).await,
    "PAYLOAD_TOO_LARGE" => |api| api.post("/runs", json!({ "plan": plan(json!([task("a")])), "inputs": "x".repeat(2 << 20) })).await,
    "INPUT_INVALID" => |api| api.post("/signals", json!({ "type": "", "key": "k" })).await,
    "WORKFLOW_INVALID" => |api| api.post("/runs", json!({ "plan": plan(json!([])) })).await,
    "WORKFLOW_NOT_FOUND" => |api| api.get("/workflows/nobody").await,
    "WORKFLOW_NAME_MISMATCH" => |api| put(api, "/workflows/other", json!({ "source": source("w") }), None).await,
    "WORKFLOW_CHANGED" => |api| changed_workflow(api).await,
    "WORKFLOW_DISABLED" => |api| disabled_workflow(api).await,
    "POLICY_NOT_FOUND" => |api| api.get("/policy/files?version=9").await,
    "POLICY_INVALID" => |api| api.post("/policy/versions", json!({ "files": { "a.rego": "package" } })).await,
    "POLICY_CHANGED" => |api| changed_policy(api).await,
    "POLICY_UNAVAILABLE" => |api| undecided_retry(api).await,
    "RUNBOOK_UNCLEAR" => |api| api.post("/executions", json!({ "ticket_id": "INC-1" })).await,
    "TENANT_NOT_FOUND" => |api| api.in_charge().await.get("/tenants/nobody").await,
    "TENANT_EXISTS" => |api| twice(&api.in_charge().await, "/tenants", json!({ "name": format!("twice-{}", api.tenant) })).await,
    "TENANT_PENDING_RUNS" => |api| full_of_pending_runs(api).await,
    "KEY_NOT_FOUND" => |api| api.get("/keys/nobody").await,
    "KEY_OVER" => |api| revoked_key(api).await,
    "USER_NOT_FOUND" => |api| api.get("/users/nobody").await,
    "USER_EXISTS" => |api| twice(api, "/users", json!({ "name": "ada", "roles": ["viewer"] })).await,
    "APPROVAL_NOT_FOUND" => |api| api.get("/approvals/nobody").await,
    "DELEGATION_NOT_FOUND" => |api| api.get("/delegations/nobody").await,
    "RUN_NOT_FOUND" => |api| run_of_nobody(api).await,
    "PAYLOAD_NOT_FOUND" => |api| payload_of_another(api).await,
    "AUDIT_LOG_NOT_FOUND" => |api| api.get("/audit?log=9").await,
    "BULK_NOT_FOUND" => |api| api.get("/bulk/nobody").await,
    "SCHEDULE_NOT_FOUND" => |api| api.get("/schedules/nobody").await,
    "UPGRADE_REQUIRED" => |api| plain_request_for_a_socket(api).await,
    "LIVE_CURSOR_AHEAD" => |api| api.get("/events?since=999999").await,
}
