//! Every request that creates may be repeated under its key, as the reference promises: generated from the description,
//! so that a new route cannot be forgotten.

use std::collections::BTreeSet;

use interlock_core::tenant::identity::Role;
use interlock_server::identity::NewKey;
use serde_json::{Value, json};

use crate::harness::{Api, completed, plan, task};

/// A request that creates, and another one to the same route.
pub struct Case {
    pub route: &'static str,
    /// Its path and its body.
    pub first: (String, Value),
    other: (String, Value),
}

impl Case {
    fn bodies(route: &'static str, first: Value, other: Value) -> Self {
        Self { route, first: (route.to_owned(), first), other: (route.to_owned(), other) }
    }

    /// The first `{…}` of the route is `id`.
    fn of(route: &'static str, id: &str, first: Value, other: Value) -> Self {
        let path = named(route, id);
        Self { route, first: (path.clone(), first), other: (path, other) }
    }
}

pub fn named(route: &str, id: &str) -> String {
    let (before, rest) = route.split_once('{').unwrap();
    let (_, after) = rest.split_once('}').unwrap();
    format!("{before}{id}{after}")
}

pub fn source(workflow: &str) -> String {
    format!("name: {workflow}\nsteps:\n  - {{ id: a, task: a }}\n")
}

async fn ended(api: &Api) -> String {
    let run = api.start(json!([task("a"), task("b")])).await;
    api.post(&format!("/runs/{run}/cancel"), json!({ "reason": "over" })).await.ok();
    run
}

/// A run that has succeeded, and can be undone.
async fn undoable(api: &Api) -> String {
    let mut step = task("a");
    step["rollback"] = json!({ "handler": "undo" });
    let mut plan = plan(json!([step]));
    // A queue of its own: no other worker takes what undoes the step.
    let queue = format!("undoable-{}", api.engine.fresh_id().simple());
    plan["steps"][0]["queue"] = json!(queue);
    let run = api.post("/runs", json!({ "plan": plan })).await.text("run_id");
    let hello = json!({ "worker": "w", "queues": [queue], "slots": 1 });
    let session = api.post("/agent/register", hello).await.text("session");
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, completed(json!(1))).await.ok();
    api.post("/agent/unregister", json!({ "session": session })).await;
    run
}

/// One case for each route that creates. What they make, and what they need, is called by names that begin with `mark`.
pub async fn cases(api: &Api, mark: &str) -> Vec<Case> {
    let called = |name: &str| format!("{mark}{name}");
    let there = called("there");
    api.post("/workflows", json!({ "source": source(&there) })).await.ok();
    let viewer = |name: &str| json!({ "name": called(name), "roles": ["viewer"] });
    let key = api.post("/keys", viewer("spare")).await.text("key");
    let ada = api.post("/users", viewer("ada")).await.text("user");
    let bob = api.post("/users", viewer("bob")).await.text("user");
    let identity = |at: &str| json!({ "name": called("w"), "terms": { "environments": [at] } });
    let slots = |name: &str| json!({ "name": called(name), "workflow": there, "cron": "0 3 * * *" });
    let schedule = api.post("/schedules", slots("daily")).await.text("schedule_id");
    let other_schedule = api.post("/schedules", slots("hourly")).await.text("schedule_id");
    let run = api.start(json!([task("a")])).await;
    let until = api.engine.now().0 + 86_400_000;
    let lent = |reason: &str| json!({ "delegator": called("ada"), "delegate": called("bob"), "until": until, "reason": reason });
    let nobody = |reason: &str| json!({ "action": "cancel", "filter": { "subject": "nobody" }, "expected_count": 0, "reason": reason });
    let person = |password: &str| json!({ "name": called("cyd"), "roles": ["viewer"], "password": password });
    let address = |secret: &str| json!({ "name": called("theirs"), "source": "slack", "secret": secret });
    let signal = |kind: &str| json!({ "type": kind, "key": called("k") });
    let ticket = |name: &str| json!({ "ticket_id": called(name), "runbook_id": there });
    let files = crate::policy::shipped_and(api, &format!("{}\n# {mark}\n", crate::policy::BY_NAME)).await;
    vec![
        Case::bodies("/policy/versions", json!({ "files": files }), json!({ "files": files, "note": "another" })),
        Case::bodies("/keys", viewer("one"), json!({ "name": called("one"), "roles": ["operator"] })),
        Case::bodies("/worker-identities", identity("dev"), identity("prod")),
        Case::of("/keys/{key}/rotate", &key, json!({ "overlap_ms": 60_000 }), json!({})),
        Case::bodies("/users", person("correct horse battery"), person("correct horse staple")),
        Case {
            route: "/users/{user}/invite",
            first: (named("/users/{user}/invite", &ada), json!({})),
            other: (named("/users/{user}/invite", &bob), json!({})),
        },
        Case::bodies("/tenants", json!({ "name": called("three") }), json!({ "name": called("four") })),
        Case::bodies("/schedules", slots("nightly"), slots("weekly")),
        Case {
            route: "/schedules/{schedule}/trigger",
            first: (named("/schedules/{schedule}/trigger", &schedule), json!({})),
            other: (named("/schedules/{schedule}/trigger", &other_schedule), json!({})),
        },
        Case::bodies("/webhooks", json!({ "name": called("in"), "source": "github" }), address("theirs")),
        Case::bodies(
            "/webhook-endpoints",
            json!({ "url": "https://example.org/", "events": ["approval.expired"] }),
            json!({ "url": "https://example.org/other" }),
        ),
        Case::bodies("/delegations", lent("away"), lent("ill")),
        Case::bodies(
            "/workflows",
            json!({ "source": source(&called("new")) }),
            json!({ "source": source(&called("newer")) }),
        ),
        Case::bodies("/bulk", nobody("x"), nobody("y")),
        Case::bodies("/signals", signal("go"), signal("stop")),
        Case::of("/runs/{run}/signals", &run, json!({ "type": "go" }), json!({ "type": "stop" })),
        Case::bodies("/runs", json!({ "plan": plan(json!([task("a")])) }), json!({ "workflow": there })),
        Case {
            route: "/runs/{run}/retry",
            first: (named("/runs/{run}/retry", &ended(api).await), json!({})),
            other: (named("/runs/{run}/retry", &ended(api).await), json!({})),
        },
        Case::of("/runs/{run}/restart", &ended(api).await, json!({ "from": "a" }), json!({ "from": "b" })),
        Case::of("/runs/{run}/rollback", &undoable(api).await, json!({ "reason": "x" }), json!({ "reason": "y" })),
        Case::bodies("/executions", ticket("inc-1"), ticket("inc-2")),
    ]
}

/// The routes whose description says that they create, with whether it says that they take a key.
fn described() -> Vec<(String, bool)> {
    let document: Value = serde_json::from_str(interlock_server::openapi::text()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let creating = paths.iter().filter(|(_, item)| item["post"]["responses"].get("201").is_some());
    let takes_key = |item: &Value| {
        let parameters = item["post"]["parameters"].as_array();
        parameters.into_iter().flatten().any(|parameter| parameter["name"] == "idempotency-key")
    };
    creating.map(|(path, item)| (path.trim_start_matches("/api/v1").to_owned(), takes_key(item))).collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_that_creates_may_be_repeated() {
    let api = Api::new().await;
    let all = Role::ALL.iter().copied().collect();
    let key = api.new_key(NewKey { installation: true, ..NewKey::new(api.tenant, "all", all) }).await;
    let api = api.with_key(&key);
    let cases = cases(&api, "").await;
    for (route, takes_key) in described() {
        assert!(takes_key, "{route}: its description does not name `idempotency-key`");
        assert!(cases.iter().any(|case| case.route == route), "{route} creates: give it a case here");
    }
    let mut hidden = BTreeSet::new();
    for (number, Case { route, first, other }) in cases.into_iter().enumerate() {
        let name = format!("key-{number}");
        let headers = [("idempotency-key", name.as_str())];
        let made = api.post_with(&first.0, first.1.clone(), &headers).await;
        assert_eq!(made.status, 201, "{route}: {}", made.body);
        assert!(!made.headers.contains_key("idempotency-replayed"), "{route}");
        let again = api.post_with(&first.0, first.1, &headers).await;
        assert_eq!(again.status, 201, "{route}: {}", again.body);
        assert_eq!(again.headers["idempotency-replayed"], "true", "{route}");
        for header in ["location", "etag"] {
            assert_eq!(made.headers.get(header), again.headers.get(header), "{route}");
        }
        let (mut made, mut again) = (made.body, again.body);
        let shown_once = again.as_object_mut().unwrap().remove("shown_once");
        for field in shown_once.iter().flat_map(|fields| fields.as_array().unwrap()) {
            let field = field.as_str().unwrap();
            assert!(made.as_object_mut().unwrap().remove(field).is_some(), "{route}: `{field}`");
            hidden.insert(format!("{route} {field}"));
        }
        assert_eq!(made, again, "{route}");
        let mismatch = api.post_with(&other.0, other.1, &headers).await;
        assert_eq!(mismatch.problem(), (422, "IDEMPOTENCY_MISMATCH"), "{route}");
    }
    let secrets = [
        "/keys text",
        "/keys/{key}/rotate text",
        "/tenants admin_key",
        "/users/{user}/invite link",
        "/webhook-endpoints secret",
        "/webhooks secret",
        "/worker-identities token",
    ];
    assert_eq!(hidden.iter().map(String::as_str).collect::<Vec<_>>(), secrets, "secrets are shown once");
    api.end().await;
}
