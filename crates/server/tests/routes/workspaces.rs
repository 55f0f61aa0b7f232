//! Workspace confinement, generated from the matrix: a key that is limited to a workspace meets no other's things, and
//! none of the tenant's as a whole.

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use interlock_core::tenant::identity::{Role, Roles};
use interlock_server::confinement::{Scope, listed};
use interlock_server::identity::NewKey;
use interlock_server::matrix::{MATRIX, Thing};
use serde_json::{Value, json};

use crate::harness::{Api, plan, task};
use crate::isolation::{Things, neighbour, request, told};

pub const WORKSPACE: &str = "ours";

/// One key that may do everything, in its workspace.
pub async fn confined(api: &Api) -> Api {
    let all: Roles = Role::ALL.iter().copied().collect();
    let new = NewKey { workspace: Some(WORKSPACE.into()), ..NewKey::new(api.tenant, "confined", all) };
    api.with_key(&api.new_key(new).await)
}

/// Things of the workspace, where things have one; the tenant's for all else.
async fn own(api: &Api, tenants: &Things) -> Things {
    let run = api.post("/runs", json!({ "workflow": "gated" })).await.text("run_id");
    let listed = api.get("/approvals").await.ok();
    let approval = listed["approvals"][0]["approval"].as_str().unwrap().to_owned();
    let key = api.post("/keys", json!({ "name": "spare", "roles": ["viewer"] })).await.text("key");
    let nobody = json!({ "action": "cancel", "filter": { "subject": "nobody" }, "expected_count": 0, "reason": "x" });
    let job = api.post("/bulk", nobody).await.text("job_id");
    let new = json!({ "name": "ours", "workflow": tenants.workflow, "cron": "0 3 * * *" });
    let schedule = api.post("/schedules", new).await.text("schedule_id");
    Things { run, approval, key, job, schedule, ..tenants.clone() }
}

/// What belongs to a workspace. All else is refused by the route, or shared.
fn has_workspace(thing: Thing) -> bool {
    matches!(thing, Thing::Run | Thing::Approval | Thing::Key | Thing::Job | Thing::Schedule)
}

#[tokio::test(start_paused = true)]
async fn another_workspaces_things_do_not_exist_for_a_confined_key() {
    let api = Api::new().await;
    let foreign = Things::of(&api, api.tenant, "shared").await;
    let confined = confined(&api).await;
    let gated = "name: gated\nsteps:\n  - { id: gate, approval: { message: ok? } }\n  - { id: a, task: a }\n";
    api.post("/workflows", json!({ "source": gated })).await.ok();
    let own = own(&confined, &foreign).await;
    let before = state_of(&api, &foreign).await;
    let mut tried = 0;
    for line in MATRIX {
        let what = format!("{} {}", line.method, line.path);
        let scope = listed(line).unwrap_or_else(|| panic!("{what} has no scope"));
        // Over WebSockets the same is shown by `confined_sockets`.
        if scope == Scope::Tenant && !line.path.starts_with("/ws/") {
            let refused = confined.ask(request(line, &own, usize::MAX, "", &confined.key)).await;
            assert_eq!(refused.problem(), (403, "PERMISSION_DENIED"), "{what}");
            assert!(refused.text("detail").contains(WORKSPACE), "{what}: {}", refused.body);
            tried += 1;
        }
        if scope != Scope::Workspace {
            continue;
        }
        for (at, (place, thing)) in line.ids.iter().enumerate() {
            if !has_workspace(*thing) {
                continue;
            }
            let (there, nowhere) = (foreign.get(*thing).to_owned(), neighbour(foreign.get(*thing)));
            let known = told(&confined, request(line, &own, at, &there, &confined.key), &there).await;
            let unknown = told(&confined, request(line, &own, at, &nowhere, &confined.key), &nowhere).await;
            assert_eq!(known, unknown, "{what}, {place:?}");
            tried += 1;
        }
        // Lists name nothing of the others.
        if line.method == "GET" && !line.path.contains('{') {
            let text = listing(&confined, line.path).await;
            for thing in [Thing::Run, Thing::Approval, Thing::Key, Thing::Job, Thing::Schedule] {
                assert!(!text.contains(foreign.get(thing)), "{what}: {thing:?} of another workspace in {text}");
            }
            tried += 1;
        }
    }
    assert!(tried > 70, "only {tried}");
    assert_eq!(state_of(&api, &foreign).await, before, "nothing has happened to the others");
    api.end().await;
}

/// Everything that a request could have changed.
async fn state_of(api: &Api, things: &Things) -> Vec<Value> {
    let mut state = Vec::new();
    for path in [
        format!("/runs/{}", things.run),
        format!("/runs/{}/events", things.run),
        format!("/approvals/{}", things.approval),
        format!("/keys/{}", things.key),
        format!("/schedules/{}", things.schedule),
    ] {
        state.push(api.get(&path).await.ok());
    }
    state
}

async fn listing(api: &Api, path: &str) -> String {
    let ask = async |path: &str| {
        let request = Request::get(path)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
        api.raw(request.body(Body::empty()).unwrap()).await
    };
    let mut response = ask(&format!("{path}?limit=1")).await;
    // Not everything is a list with pages.
    if response.status() == 400 {
        response = ask(path).await;
    }
    assert!(response.status().is_success(), "{path}: {}", response.status());
    String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_confined_admin_makes_only_confined_keys() {
    let api = Api::new().await;
    let confined = confined(&api).await;
    let made = confined.post("/keys", json!({ "name": "k", "roles": ["admin"] })).await.ok();
    assert_eq!(made["workspace"], WORKSPACE);
    let other = confined.post("/keys", json!({ "name": "k", "roles": ["viewer"], "workspace": "theirs" })).await;
    assert_eq!(other.problem(), (422, "INPUT_INVALID"));
    // A worker takes the steps of all workspaces.
    let worker = confined.post("/keys", json!({ "name": "k", "roles": ["worker"] })).await;
    assert_eq!(worker.problem(), (422, "INPUT_INVALID"));
    assert!(worker.text("detail").contains("all workspaces"));
    api.end().await;
}

/// A name that says nothing is neither no workspace nor all of them: it is refused, and nothing is made.
#[tokio::test(start_paused = true)]
async fn a_workspace_without_a_name_is_refused_wherever_one_is_named() {
    let api = Api::new().await;
    let confined = confined(&api).await;
    api.post("/workflows", json!({ "source": "name: one\nsteps:\n  - { id: a, task: a }\n" })).await.ok();
    let long = "x".repeat(129);
    for name in ["", " ", "red\nblue", &long] {
        let act = json!({ "action": "cancel", "filter": { "workspace": name }, "expected_count": 0, "reason": "x" });
        let posts = [
            ("/runs", json!({ "workflow": "one", "workspace": name })),
            ("/executions", json!({ "ticket_id": "T-1", "runbook_id": "one", "workspace": name })),
            ("/schedules", json!({ "name": "s", "workflow": "one", "cron": "0 3 * * *", "workspace": name })),
            ("/keys", json!({ "name": "k", "roles": ["viewer"], "workspace": name })),
            ("/bulk/preview", json!({ "filter": { "workspace": name } })),
            ("/bulk", act),
        ];
        let in_query = name.replace(' ', "%20").replace('\n', "%0A");
        for caller in [&api, &confined] {
            for (path, body) in &posts {
                let refused = caller.post(path, body.clone()).await;
                assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{path} {name:?}");
                assert!(refused.text("detail").contains("`workspace`"), "{path} {name:?}: {}", refused.body);
            }
            for path in ["/runs", "/stats"] {
                let refused = caller.get(&format!("{path}?workspace={in_query}")).await;
                assert!(matches!(refused.problem().0, 400 | 422), "{path} {name:?}: {}", refused.body);
                assert!(refused.text("detail").contains("`workspace`"), "{path} {name:?}: {}", refused.body);
            }
        }
    }
    for (path, field) in [("/runs", "runs"), ("/schedules", "schedules"), ("/bulk", "jobs")] {
        assert_eq!(api.get(path).await.ok()[field], json!([]), "{path}");
    }
    api.end().await;
}

/// The rules on a subject do not reach into another workspace.
#[tokio::test(start_paused = true)]
async fn a_start_does_nothing_to_another_workspaces_run() {
    let api = Api::new().await;
    let confined = confined(&api).await;
    api.post("/workflows", json!({ "source": "name: one\nsteps:\n  - { id: a, task: a }\n" })).await.ok();
    let body = |more: Value| {
        let mut body = json!({ "workflow": "one", "subject": "order-1" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let theirs = api.post("/runs", body(json!({}))).await.text("run_id");
    for rule in ["reject", "signal", "cancel_previous"] {
        let refused = confined.post("/runs", body(json!({ "on_conflict": rule }))).await;
        assert_eq!(refused.problem(), (409, "RUN_SUBJECT_BUSY"), "{rule}");
        assert!(!refused.body.to_string().contains(&theirs), "{rule}: {}", refused.body);
    }
    // A run may queue behind those of other workspaces, and replaces only those of its own.
    let queued = confined.post("/runs", body(json!({ "on_conflict": "queue" }))).await.text("run_id");
    let again = api.post("/runs", body(json!({ "on_conflict": "queue" }))).await.text("run_id");
    let replacing = api.post("/runs", body(json!({ "on_conflict": "cancel_previous" }))).await.text("run_id");
    for run in [&theirs, &again] {
        assert_eq!(api.get(&format!("/runs/{run}?wait_ms=5000")).await.ok()["state"], "canceled", "{run}");
    }
    assert_ne!(api.get(&format!("/runs/{queued}")).await.ok()["state"], "canceled", "it is another workspace's");
    assert_ne!(api.get(&format!("/runs/{replacing}")).await.ok()["state"], "canceled");
    api.end().await;
}

/// A plan in the request is none of the tenant's applied workflows.
#[tokio::test(start_paused = true)]
async fn a_confined_key_starts_the_tenants_workflows_only() {
    let api = Api::new().await;
    let refused = confined(&api).await.post("/runs", json!({ "plan": plan(json!([task("a")])) })).await;
    assert_eq!(refused.problem(), (403, "PERMISSION_DENIED"));
    assert!(refused.text("detail").contains("`workflow` instead of `plan`"), "{}", refused.body);
    api.end().await;
}

/// A signal to a run is for that run alone, even if other runs wait for the same under its subject.
#[tokio::test(start_paused = true)]
async fn a_signal_to_a_run_wakes_no_other() {
    let api = Api::new().await;
    let confined = confined(&api).await;
    let later = "name: later\ninputs: { key: { type: string, default: order-1 } }\nsteps:\n  - { id: first, wait: { signal: ready } }\n  - { id: go, wait: { signal: go, key: \"${{ inputs.key }}\" } }\n";
    api.post("/workflows", json!({ "source": later })).await.ok();
    let other = "name: other\nsteps:\n  - { id: go, wait: { signal: go, key: order-1 } }\n";
    api.post("/workflows", json!({ "source": other })).await.ok();
    let theirs = api.post("/runs", json!({ "workflow": "other" })).await.text("run_id");
    let own = confined.post("/runs", json!({ "workflow": "later", "subject": "order-1" })).await.text("run_id");
    // It does not wait for it yet, and the other run does.
    for signal in ["go", "ready"] {
        let sent = confined.post(&format!("/runs/{own}/signals"), json!({ "type": signal, "payload": 1 })).await;
        assert_eq!(sent.status, 201, "{}", sent.body);
    }
    assert_eq!(api.get(&format!("/runs/{own}?wait_ms=60000")).await.ok()["state"], "succeeded");
    assert_ne!(api.get(&format!("/runs/{theirs}")).await.ok()["state"], "succeeded", "it was not for this one");
    api.end().await;
}
