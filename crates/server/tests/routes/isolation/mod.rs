//! Tenant isolation, generated from the matrix: every route, every role, every place where a request can name
//! something. Another tenant's id must be answered with the same bytes as an id that does not exist. `names` does the
//! same for names, `headers` for what comes beside a request, `frames` for what is said on streams.

mod frames;
mod headers;
mod names;

use std::collections::BTreeSet;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use interlock_core::ids::{OutboxId, TenantId};
use interlock_core::json::Json;
use interlock_core::tenant::identity::{Role, Roles};
use interlock_server::identity::NewKey;
use interlock_server::matrix::{IdPosition, Line, MATRIX, Thing};
use interlock_store::{NewMessage, ReplayMessages};
use serde_json::{Value, json};

use crate::harness::{Api, plan, task};

/// One of each kind of thing, all of one tenant.
#[derive(Debug, Clone)]
pub struct Things {
    /// What all their names begin with; the workflow's name.
    pub mark: String,
    pub tenant: String,
    pub run: String,
    pub session: String,
    pub approval: String,
    pub key: String,
    pub worker_identity: String,
    pub user: String,
    pub job: String,
    pub workflow: String,
    pub schedule: String,
    pub inbound: String,
    pub outbound: String,
    pub delegation: String,
    pub change: String,
    pub payload: String,
    pub message: String,
    /// A connection to Slack, and a person who is linked there.
    pub slack: String,
    pub person: String,
}

impl Things {
    pub async fn of(api: &Api, tenant: TenantId, workflow: &str) -> Self {
        api.post("/workflows", json!({ "source": source(workflow) })).await.ok();
        let gate = json!([{ "key": "gate", "kind": "approval" }, task("a")]);
        let long = format!("{tenant}{}", "x".repeat(100_000));
        let run = api.post("/runs", json!({ "plan": plan(gate), "inputs": { "text": long } })).await.text("run_id");
        let shown = api.get(&format!("/runs/{run}")).await.ok();
        let payload = shown["inputs"]["$payload"]["sha256"].as_str().unwrap().to_owned();
        let listed = api.get(&format!("/approvals?run={run}")).await.ok();
        let approval = listed["approvals"][0]["approval"].as_str().unwrap().to_owned();
        let key = api.post("/keys", json!({ "name": "spare", "roles": ["viewer"] })).await.text("key");
        let [ada, bob] = ["ada", "bob"].map(|name| format!("{workflow}-{name}"));
        let identity = json!({ "name": "spare", "terms": { "environments": ["dev"] } });
        let worker_identity = api.post("/worker-identities", identity).await.text("identity");
        let user = api.post("/users", json!({ "name": ada, "roles": ["viewer"] })).await.text("user");
        api.post("/users", json!({ "name": bob, "roles": ["viewer"] })).await.ok();
        let until = api.engine.now().0 + 86_400_000;
        let lent = json!({ "delegator": ada, "delegate": bob, "until": until, "reason": "away" });
        let delegation = api.post("/delegations", lent).await.text("delegation");
        let nobody =
            json!({ "action": "cancel", "filter": { "subject": "nobody" }, "expected_count": 0, "reason": "x" });
        let job = api.post("/bulk", nobody).await.text("job_id");
        let new = json!({ "name": format!("{workflow}-nightly"), "workflow": workflow, "cron": "0 3 * * *" });
        let schedule = api.post("/schedules", new).await.text("schedule_id");
        let new = json!({ "name": format!("{workflow}-hooks"), "source": "github" });
        let inbound = api.post("/webhooks", new).await.text("endpoint_id");
        // An event that does not come, so that nothing is sent.
        let new = json!({ "url": "https://example.org/", "events": ["approval.expired"] });
        let outbound = api.post("/webhook-endpoints", new).await.text("endpoint_id");
        let message = message(api, tenant, &outbound, &run).await;
        let asked_in = tenant;
        let slack = crate::slack::connected(api, tenant, &ada).await.to_string();
        let person = ada.clone();
        let (tenant, session, workflow) = (tenant.to_string(), api.register().await, workflow.to_owned());
        Self {
            mark: workflow.clone(),
            tenant,
            run,
            session,
            approval,
            key,
            worker_identity,
            user,
            job,
            workflow,
            schedule,
            inbound,
            outbound,
            delegation,
            change: crate::two_keys::asked(api, asked_in).await,
            payload,
            message,
            slack,
            person,
        }
    }

    pub fn get(&self, thing: Thing) -> &str {
        match thing {
            Thing::Tenant => &self.tenant,
            Thing::Run => &self.run,
            Thing::Session => &self.session,
            Thing::Approval => &self.approval,
            Thing::Key => &self.key,
            Thing::WorkerIdentity => &self.worker_identity,
            Thing::User => &self.user,
            Thing::Delegation => &self.delegation,
            Thing::Change => &self.change,
            Thing::Job => &self.job,
            Thing::Step => "gate",
            Thing::Payload => &self.payload,
            Thing::Workflow => &self.workflow,
            Thing::Version => "1",
            Thing::Schedule => &self.schedule,
            Thing::Inbound | Thing::Address => &self.inbound,
            Thing::Outbound => &self.outbound,
            Thing::Message => &self.message,
            Thing::SlackAddress => &self.slack,
            Thing::Person => &self.person,
        }
    }
}

/// A delivery of an endpoint, which is disabled so that nothing is sent.
async fn message(api: &Api, tenant: TenantId, endpoint: &str, run: &str) -> String {
    api.post(&format!("/webhook-endpoints/{endpoint}/disable"), json!({})).await.ok();
    let id = OutboxId(api.engine.fresh_id());
    let payload = Json::of(&json!({ "type": "session.created" })).unwrap();
    let messages = vec![NewMessage { id, run: run.parse().unwrap(), payload, place: 1 }];
    let queue = ReplayMessages { tenant, endpoint: endpoint.parse().unwrap(), messages, at: api.engine.now() };
    api.engine.store().write(queue).await.unwrap();
    let listed = api.get(&format!("/webhook-endpoints/{endpoint}/deliveries")).await.ok();
    assert_eq!(listed["deliveries"][0]["delivery_id"], json!(id), "{listed}");
    id.to_string()
}

fn source(workflow: &str) -> String {
    format!("name: {workflow}\nsteps:\n  - {{ id: a, task: a }}\n")
}

/// The next id, which does not exist: it also sorts like its neighbour, for cursors.
pub fn neighbour(id: &str) -> String {
    let (rest, last) = id.split_at(id.len() - 1);
    let next = if last == "0" { "1" } else { "0" };
    format!("{rest}{next}")
}

/// A body with which the route would do its work, if everything in it were the caller's own.
pub fn body(line: &Line, own: &Things) -> Value {
    let attempt = json!({ "tenant": own.tenant, "run": own.run, "position": 1, "attempt": 1, "epoch": 1 });
    let with = |more: Value| {
        let mut body = attempt.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let receipt = "rcp_000000000000000000000000000000ff";
    match line.path.strip_prefix("/api/v1").unwrap_or(line.path) {
        "/runs" | "/workflows/plan" => json!({ "workflow": own.workflow }),
        "/workflows" | "/workflows/{workflow}" => json!({ "source": source(&own.workflow) }),
        "/agent/register" => json!({ "worker": "w", "queues": ["q"], "slots": 1, "tenant": own.tenant }),
        "/agent/heartbeat" => json!({
            "session": own.session,
            "held": [{ "tenant": own.tenant, "run": own.run, "position": 1, "attempt": 1 }],
            "keeps": [{ "tenant": own.tenant, "run": own.run }],
        }),
        "/agent/poll" => json!({ "session": own.session, "max": 1, "wait_ms": 0 }),
        "/agent/unregister" => json!({ "session": own.session }),
        "/agent/{session}/complete-step" => with(json!({ "outcome": { "status": "completed", "output": 1 } })),
        "/agent/{session}/effects" => with(json!({ "template": "t", "number": 0, "effect": "keyed", "request": 1 })),
        "/agent/{session}/outcomes" => with(json!({ "receipt": receipt, "happened": true, "response": 1 })),
        "/agent/{session}/assignments" => json!({
            "tenant": own.tenant, "run": own.run, "epoch": 1, "number": 1, "answer": { "status": "acked" },
        }),
        "/agent/{session}/output" => with(json!({ "chunks": [{ "seq": 1, "stream": "stdout", "text": "x" }] })),
        "/runs/{run}/cancel"
        | "/runs/{run}/pause"
        | "/runs/{run}/skip"
        | "/runs/{run}/reassign"
        | "/runs/{run}/rollback"
        | "/workers/{session}/maintenance" => {
            json!({ "reason": "x" })
        }
        "/runs/{run}/labels" => json!({ "labels": { "team": "x" } }),
        "/executions" => json!({ "ticket_id": "INC-1", "runbook_id": own.workflow }),
        "/executions/{session_id}/approve" => json!({ "step_number": 1, "approved": true }),
        "/executions/{session_id}/rollback" => json!({ "reason": "x", "step_number": 1 }),
        "/runs/{run}/steps/{step}/resolve" => json!({ "outcome": "happened", "reason": "x" }),
        "/runs/{run}/signals" => json!({ "type": "go" }),
        "/runs/{run}/approve" => json!({ "approve": true, "approval": own.approval }),
        "/approvals/{approval}/decision" => json!({ "decision": "approve", "digest": "x" }),
        "/approvals/{approval}/vote" => json!({ "approve": true, "digest": "x" }),
        "/webhook-endpoints/{endpoint}/replay" => json!({ "delivery_id": own.get(Thing::Message) }),
        "/dead-letters/replay" => json!({ "message_id": own.get(Thing::Message) }),
        "/users/{user}/password" => json!({ "password": "correct horse battery" }),
        "/bulk/preview" => json!({ "filter": { "subject": "nobody" } }),
        "/audit/erasures" => json!({ "person": "nobody", "reason": "x" }),
        "/bulk" => json!({ "action": "cancel", "filter": { "subject": "nobody" }, "expected_count": 0, "reason": "x" }),
        "/signals" => json!({ "type": "go", "key": "k" }),
        _ => json!({}),
    }
}

/// The request of a line, with `id` in one place and the caller's own things in all the others.
pub fn request(line: &Line, own: &Things, at: usize, id: &str, key: &str) -> Request<Body> {
    let mut path = line.path.to_owned();
    let mut query = Vec::new();
    let mut headers = HeaderMap::new();
    let mut body = body(line, own);
    for (number, (place, thing)) in line.ids.iter().enumerate() {
        let value = if number == at { id } else { own.get(*thing) };
        match place {
            IdPosition::Path(name) => path = path.replace(&format!("{{{name}}}"), value),
            IdPosition::Query(name) | IdPosition::Cursor(name) if number == at => query.push(format!("{name}={value}")),
            IdPosition::Query(_) | IdPosition::Cursor(_) => {}
            IdPosition::Body(pointer) => {
                let place = body.pointer_mut(pointer);
                let place = place.unwrap_or_else(|| panic!("{}: the body has no {pointer}", line.path));
                *place = json!(value);
            }
            IdPosition::Header(name) => {
                headers.insert(*name, value.parse().unwrap());
            }
        }
    }
    let uri = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let mut request = Request::builder().method(line.method).uri(uri).header(header::HOST, "localhost");
    request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
    for (name, value) in headers {
        request = request.header(name.unwrap(), value);
    }
    if line.method == "GET" {
        return request.body(Body::empty()).unwrap();
    }
    request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())).unwrap()
}

/// Everything that can be told from an answer, with the id itself taken out.
pub async fn told(api: &Api, request: Request<Body>, id: &str) -> (StatusCode, Vec<(String, String)>, String) {
    let response = api.raw(request).await;
    let status = response.status();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let headers = headers.filter(|(name, _)| name != "content-length" && name != "x-request-id").collect();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, headers, String::from_utf8(bytes.to_vec()).unwrap().replace(id, "ID"))
}

#[tokio::test(start_paused = true)]
async fn another_tenants_ids_are_ids_that_do_not_exist() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let own = Things::of(&api, api.tenant, "ours").await;
    let foreign = Things::of(&other, api.other_tenant, "theirs").await;
    let before = other.get(&format!("/runs/{}", foreign.run)).await.ok();
    let mut tried = 0;
    for role in Role::ALL.iter().copied().map(Some).chain([None]) {
        let roles: Roles =
            role.map_or_else(|| Role::ALL.iter().copied().collect(), |role| [role].into_iter().collect());
        let key = api.new_key(NewKey::new(api.tenant, "asking", roles)).await;
        for line in MATRIX {
            for (at, (place, thing)) in line.ids.iter().enumerate() {
                // A change counts under two keys only: `headers` asks there.
                if matches!(thing, Thing::Step | Thing::Version) || matches!(place, IdPosition::Header(_)) {
                    continue;
                }
                let (there, nowhere) = (foreign.get(*thing).to_owned(), neighbour(foreign.get(*thing)));
                let known = told(&api, request(line, &own, at, &there, &key), &there).await;
                let unknown = told(&api, request(line, &own, at, &nowhere, &key), &nowhere).await;
                let what = format!("{} {} as {role:?}, {place:?}", line.method, line.path);
                assert_eq!(known, unknown, "{what}");
                // An address is for senders that can sign, whatever key they have.
                let is_address = matches!(thing, Thing::Address | Thing::SlackAddress);
                assert_eq!(known.0 == StatusCode::UNAUTHORIZED, is_address, "{what}: {known:?}");
                assert!(!known.0.is_server_error(), "{what}: {known:?}");
                // What a PUT names may be made by it: there is no 404.
                if role.is_none() && matches!(place, IdPosition::Path(_)) && line.method != "PUT" && !is_address {
                    // A socket's address says so before it says anything else; `live` asks with an upgrade.
                    assert!(matches!(known.0.as_u16(), 404 | 410 | 426), "{what}: {known:?}");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "only {tried}");
    assert_eq!(other.get(&format!("/runs/{}", foreign.run)).await.ok(), before, "and nothing has happened to them");
    assert_eq!(other.get(&format!("/keys/{}", foreign.key)).await.ok().get("revoked_at"), None);
    api.end().await;
}

/// The description of the API is made from the handlers: whatever it knows, the matrix must know too.
#[test]
fn every_route_is_in_the_matrix_with_every_place_that_holds_an_id() {
    let document: Value = serde_json::from_str(interlock_server::openapi::text()).unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let line = MATRIX.iter().find(|line| line.method == method && line.path == path);
            let line = line.unwrap_or_else(|| panic!("{method} {path} is missing from the matrix"));
            described.insert((method.clone(), path.clone()));
            let mut places = BTreeSet::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if is_id(&parameter["schema"], &document) {
                    places.insert(parameter["name"].as_str().unwrap().to_owned());
                }
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            ids_in(schema, &document, String::new(), &mut places, 0);
            for place in places {
                let listed = line.ids.iter().any(|(at, _)| match at {
                    IdPosition::Path(name)
                    | IdPosition::Query(name)
                    | IdPosition::Cursor(name)
                    | IdPosition::Header(name) => *name == place,
                    IdPosition::Body(pointer) => *pointer == place,
                });
                // A receipt is found by the run and the attempt that the same body names.
                assert!(listed || place == "/receipt", "{method} {path}: the id at `{place}` is not in the matrix");
            }
        }
    }
    for line in MATRIX.iter().filter(|line| line.path.starts_with("/api/")) {
        let route = (line.method.to_owned(), line.path.to_owned());
        assert!(described.contains(&route), "{route:?} is in the matrix and nowhere else");
    }
}

pub fn resolve<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => schema,
    }
}

/// Ids are texts with a pattern that begins with their prefix.
fn is_id(schema: &Value, document: &Value) -> bool {
    let schema = resolve(schema, document);
    let options = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array());
    if let Some(options) = options {
        return options.iter().any(|option| is_id(option, document));
    }
    schema["pattern"].as_str().is_some_and(|pattern| pattern.starts_with('^') && pattern.contains("_[0-9a-f"))
}

/// Plans and payloads are the caller's own words: what they hold is not looked up.
fn ids_in(schema: &Value, document: &Value, at: String, found: &mut BTreeSet<String>, depth: usize) {
    let schema = resolve(schema, document);
    if depth > 4 || at == "/plan" {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{at}/{name}");
        if is_id(property, document) {
            found.insert(place);
            continue;
        }
        let inner = resolve(property, document);
        if inner["type"] == "array" {
            ids_in(&inner["items"], document, format!("{place}/0"), found, depth + 1);
        } else {
            ids_in(inner, document, place, found, depth + 1);
        }
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        ids_in(part, document, at.clone(), found, depth + 1);
    }
}
