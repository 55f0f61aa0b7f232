//! Names in bodies and queries: another tenant's name means as little as one that does not exist. Generated from the
//! description of the API, so that a new field must say whether it names something.

use std::collections::BTreeSet;

use interlock_core::json::Json;
use serde_json::{Value, json};

use super::{Things, body, resolve};
use crate::harness::{Api, ApiResponse, plan, task};

/// What a text names. Each is something that the tenants have, under names that begin with their own mark.
#[derive(Debug, Clone, Copy)]
enum Named {
    Workflow,
    Person,
    Workspace,
    Subject,
    /// What made a run, and the id by which a sender makes one message of several.
    Source,
    Schedule,
    Inbound,
    Queue,
    Label,
}

impl Named {
    fn of(self, mark: &str) -> String {
        match self {
            Self::Workflow => mark.to_owned(),
            Self::Person => format!("{mark}-ada"),
            Self::Workspace => format!("{mark}-workspace"),
            Self::Subject => format!("{mark}-subject"),
            Self::Source => format!("{mark}-source"),
            Self::Schedule => format!("{mark}-nightly"),
            Self::Inbound => format!("{mark}-hooks"),
            Self::Queue => format!("{mark}-queue"),
            Self::Label => format!("{mark}-label"),
        }
    }
}

/// A route, the place in its query or (by JSON pointer) in its body, and what is named there.
const NAMES: &[(&str, &str, &str, Named)] = &[
    ("POST", "/agent/register", "/queues/0", Named::Queue),
    ("GET", "/approvals", "workflow", Named::Workflow),
    ("GET", "/approvals", "subject", Named::Subject),
    ("POST", "/approvals/{approval}/decision", "/on_behalf_of", Named::Person),
    ("POST", "/approvals/{approval}/vote", "/on_behalf_of", Named::Person),
    ("GET", "/audit", "actor", Named::Person),
    ("GET", "/audit", "subject", Named::Subject),
    ("POST", "/audit/erasures", "/person", Named::Person),
    ("POST", "/bulk", "/filter/workflow", Named::Workflow),
    ("POST", "/bulk", "/filter/subject", Named::Subject),
    ("POST", "/bulk", "/filter/workspace", Named::Workspace),
    ("POST", "/bulk", "/filter/labels/*", Named::Label),
    ("POST", "/bulk", "/filter/inputs/*", Named::Label),
    ("POST", "/bulk", "/filter/trigger", Named::Source),
    ("POST", "/bulk/preview", "/filter/workflow", Named::Workflow),
    ("POST", "/bulk/preview", "/filter/subject", Named::Subject),
    ("POST", "/bulk/preview", "/filter/workspace", Named::Workspace),
    ("POST", "/bulk/preview", "/filter/labels/*", Named::Label),
    ("POST", "/bulk/preview", "/filter/inputs/*", Named::Label),
    ("POST", "/bulk/preview", "/filter/trigger", Named::Source),
    ("POST", "/delegations", "/delegate", Named::Person),
    ("POST", "/delegations", "/delegator", Named::Person),
    ("POST", "/executions", "/runbook_id", Named::Workflow),
    ("POST", "/executions", "/ticket_id", Named::Subject),
    ("POST", "/executions", "/workspace", Named::Workspace),
    ("POST", "/executions/{session_id}/approve", "/on_behalf_of", Named::Person),
    ("POST", "/keys", "/owner", Named::Person),
    ("POST", "/keys", "/workspace", Named::Workspace),
    ("GET", "/runs", "workflow", Named::Workflow),
    ("GET", "/runs", "subject", Named::Subject),
    ("GET", "/runs", "workspace", Named::Workspace),
    ("GET", "/runs", "trigger", Named::Source),
    ("GET", "/runs", "label", Named::Label),
    ("GET", "/runs", "input", Named::Label),
    ("POST", "/runs", "/workflow", Named::Workflow),
    ("POST", "/runs", "/subject", Named::Subject),
    ("POST", "/runs", "/workspace", Named::Workspace),
    ("POST", "/runs", "/labels/*", Named::Label),
    ("PATCH", "/runs/{run}/labels", "/labels/*", Named::Label),
    ("POST", "/runs/{run}/approve", "/on_behalf_of", Named::Person),
    ("POST", "/runs/{run}/signals", "/source_id", Named::Source),
    ("POST", "/schedules", "/name", Named::Schedule),
    ("POST", "/schedules", "/workflow", Named::Workflow),
    ("POST", "/schedules", "/workspace", Named::Workspace),
    ("POST", "/signals", "/key", Named::Subject),
    ("POST", "/signals", "/source_id", Named::Source),
    ("GET", "/stats", "workflow", Named::Workflow),
    ("GET", "/stats", "subject", Named::Subject),
    ("GET", "/stats", "workspace", Named::Workspace),
    ("GET", "/stats", "trigger", Named::Source),
    ("GET", "/stats", "label", Named::Label),
    ("GET", "/stats", "input", Named::Label),
    ("POST", "/users", "/name", Named::Person),
    ("GET", "/waits", "key", Named::Subject),
    ("POST", "/webhook-endpoints", "/workflows/0", Named::Workflow),
    ("POST", "/webhooks", "/name", Named::Inbound),
    ("POST", "/workflows/plan", "/workflow", Named::Workflow),
];

/// Fields that hold the caller's own words, or words that the API defines: nothing is looked up by them.
const OWN_WORDS: &[&str] = &[
    // Whom a worker has paid.
    "model",
    "provider",
    "unit",
    // What a worker was given: ids of other systems.
    "credential_id",
    "vault_request_id",
    "lease_id",
    // Reasons and remarks.
    "reason",
    "why",
    "notes",
    "comment",
    "description",
    "display_name",
    "email",
    "message",
    "ticket_id",
    // What is made, and named by the caller who makes it, within what the same request names.
    "name",
    "token",
    "request",
    "environments",
    "segments",
    "profiles",
    "code",
    "template",
    "worker",
    "labels",
    "build_id",
    "type",
    "signal",
    "key",
    "file",
    "source",
    "url",
    "header",
    "note",
    "text",
    // A step of the run in the same request; a digest that the server has given out; a place in the caller's own list.
    "from",
    "step",
    "digest",
    "after",
    // Names and texts of the files of a policy.
    "files",
    // Ids of things in Slack.
    "team",
    "enterprise",
    "channel",
    "escalation_channel",
    // Words that the API or a standard defines.
    "cron",
    "timezone",
    "environment_profile",
    "approver_role",
    "events",
    "groups",
    "tasks",
    "capabilities",
    "prefer",
    // Credentials: whose they are is what they say.
    "password",
    "old_password",
    "secret",
    "verifier",
    "token",
    "bot_token",
    "signing_secret",
    "pagerduty_routing_key",
    "tenant",
    // Looked at by `headers`, by `frames`, and (a message's destination) by a test of its own below.
    "destination",
    "idempotency-key",
    "x-idempotency-key",
    "if-match",
    "if-none-match",
    "last_event_id",
    "since",
    "before",
    // A group of people, by which a list is narrowed.
    "approvers",
];

/// The places of a route that take a text which is no id: parameters by name, fields of the body by JSON pointer.
fn texts(operation: &Value, document: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap().to_owned();
        if parameter["in"] != "path" {
            collect(&parameter["schema"], document, &name, &mut found, 0);
        }
    }
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    collect(schema, document, "", &mut found, 0);
    found
}

fn collect(schema: &Value, document: &Value, at: &str, found: &mut BTreeSet<String>, depth: usize) {
    let schema = resolve(schema, document);
    if depth > 6 || at == "/plan" {
        return;
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for part in schema[word].as_array().into_iter().flatten() {
            collect(part, document, at, found, depth + 1);
        }
    }
    let is_text =
        schema["type"] == "string" || schema["type"].as_array().is_some_and(|types| types.contains(&json!("string")));
    let is_id = schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("_[0-9a-f"));
    if is_text && !is_id && schema.get("enum").is_none() && schema.get("const").is_none() && !at.is_empty() {
        found.insert(at.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(property, document, &format!("{at}/{name}"), found, depth + 1);
    }
    // A query parameter that may come several times goes by its name alone.
    let item = if at.starts_with('/') { format!("{at}/0") } else { at.to_owned() };
    collect(&schema["items"], document, &item, found, depth + 1);
    if schema["additionalProperties"].is_object() {
        collect(&schema["additionalProperties"], document, &format!("{at}/*"), found, depth + 1);
    }
}

#[test]
fn every_text_of_a_request_is_a_name_or_the_callers_own_words() {
    let document: Value = serde_json::from_str(interlock_server::openapi::text()).unwrap();
    let (mut named, mut own) = (BTreeSet::new(), BTreeSet::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let (method, path) = (method.to_uppercase(), path.trim_start_matches("/api/v1"));
            for place in texts(operation, &document) {
                let listed = NAMES.iter().position(|name| (name.0, name.1, name.2) == (&method, path, &place));
                let word = place.trim_end_matches("/*").trim_end_matches("/0").rsplit('/').next().unwrap().to_owned();
                let is_own = OWN_WORDS.contains(&word.as_str());
                assert!(
                    listed.is_some() || is_own,
                    "{method} {path}: does the text at `{place}` name something? Put it into NAMES or OWN_WORDS"
                );
                named.extend(listed);
                own.extend(is_own.then_some(word));
            }
        }
    }
    for (number, name) in NAMES.iter().enumerate() {
        assert!(named.contains(&number), "{name:?} is no place of the API any more");
    }
    let gone: Vec<_> = OWN_WORDS.iter().filter(|word| !own.contains(**word)).collect();
    assert!(gone.is_empty(), "no field has these names any more: {gone:?}");
}

/// Something of the tenant under every name that `NAMES` knows.
async fn possessions(api: &Api, mark: &str) {
    let start = json!({
        "plan": plan(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }])),
        "subject": Named::Subject.of(mark),
        "workspace": Named::Workspace.of(mark),
        "labels": { "batch": Named::Label.of(mark) },
    });
    api.post("/runs", start).await.ok();
    // No run waits for it, and it is remembered by its source.
    let signal = json!({ "type": "stop", "key": Named::Subject.of(mark), "source_id": Named::Source.of(mark) });
    api.post("/signals", signal).await.ok();
    let mut step = task("a");
    step["queue"] = json!(Named::Queue.of(mark));
    api.start(json!([step])).await;
    let key = json!({ "name": "lent", "roles": ["viewer"], "owner": Named::Person.of(mark), "workspace": Named::Workspace.of(mark) });
    api.post("/keys", key).await.ok();
}

/// The request of a route, with `value` at one place of it and otherwise what the caller has.
async fn ask(
    api: &Api,
    own: &Things,
    (method, path, place): (&str, &str, &str),
    value: &str,
    fresh: &str,
) -> ApiResponse {
    let line = interlock_server::matrix::find(method, &format!("/api/v1{path}")).unwrap();
    let mut uri = format!("/api/v1{path}");
    for (place, thing) in line.ids {
        if let interlock_server::matrix::IdPosition::Path(name) = place {
            uri = uri.replace(&format!("{{{name}}}"), own.get(*thing));
        }
    }
    let mut sent = valid(path, own, fresh).unwrap_or_else(|| body(line, own));
    if place.starts_with('/') {
        set(&mut sent, place, value);
    } else {
        let value = if matches!(place, "label" | "input") { format!("batch:{value}") } else { value.to_owned() };
        uri = format!("{uri}?{place}={value}");
    }
    api.send(method, &uri, sent).await
}

/// What creates something with its own name each time.
pub fn valid(path: &str, own: &Things, fresh: &str) -> Option<Value> {
    let until = 1_800_000_000_000_i64;
    Some(match path {
        "/keys" | "/users" => json!({ "name": fresh, "roles": ["viewer"] }),
        "/worker-identities" => json!({ "name": fresh, "terms": { "environments": ["dev"] } }),
        "/schedules" => json!({ "name": fresh, "workflow": own.workflow, "cron": "0 3 * * *" }),
        "/webhooks" => json!({ "name": fresh, "source": "github" }),
        "/webhook-endpoints" => json!({ "url": "https://example.org/", "events": ["approval.expired"] }),
        "/executions" => json!({ "ticket_id": fresh, "runbook_id": own.workflow }),
        // One that has few tests: those of the shipped policy, which are the default, are many.
        "/policy/tests" => {
            let decision = r#"{"verdict": "allow", "tier": "low", "obligations": null, "reasons": []}"#;
            json!({ "files": { "all.rego": format!("package interlock\n\ndecision := {decision}\n") } })
        }
        "/delegations" => {
            let mark = &own.mark;
            json!({ "delegator": format!("{mark}-ada"), "delegate": format!("{mark}-bob"), "until": until, "reason": "x" })
        }
        _ => return None,
    })
}

/// Puts a text at a JSON pointer, on a way that need not be there yet.
fn set(body: &mut Value, pointer: &str, value: &str) {
    let mut at = body;
    let mut parts = pointer.trim_start_matches('/').split('/').peekable();
    while let Some(part) = parts.next() {
        at = match part {
            "0" => {
                *at = json!([null]);
                &mut at[0]
            }
            "*" => &mut at["batch"],
            part => {
                if !at[part].is_object() && parts.peek().is_some() {
                    at[part] = json!({});
                }
                &mut at[part]
            }
        };
    }
    *at = json!(value);
}

/// What can be told from an answer, without what is new each time: ids, secrets, digests, and the names themselves.
pub fn without_news(answer: &ApiResponse, names: [&str; 2]) -> (u16, String) {
    let mut text = answer.body.to_string();
    // A short one, such as an entity tag, may stand there for another reason.
    for name in names.into_iter().filter(|name| name.len() > 6) {
        text = text.replace(name, "NAME");
    }
    while let Some(begun) = text.find("whsec_") {
        let end = text[begun..].find('"').map_or(text.len(), |length| begun + length);
        text.replace_range(begun..end, "SECRET");
    }
    let mut plain = String::new();
    let mut word = String::new();
    for letter in text.chars().chain(['"']) {
        if letter.is_ascii_alphanumeric() || letter == '_' || letter == '+' {
            word.push(letter);
            continue;
        }
        // Ids, digests, keys, and the second half of a trace context.
        let is_span = word.len() == 16 && word.chars().all(|letter| letter.is_ascii_hexdigit());
        let is_new = word.len() >= 32 || is_span || word.starts_with("ilk_") || word.starts_with("ilw_");
        plain.push_str(if is_new { "NEW" } else { &word });
        word.clear();
        plain.push(letter);
    }
    (answer.status.as_u16(), plain)
}

#[tokio::test(start_paused = true)]
async fn another_tenants_names_are_names_that_nobody_has() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let (ours, theirs, nobodys) = ("marked-one", "marked-two", "marked-none");
    let own = Things::of(&api, api.tenant, ours).await;
    let foreign = Things::of(&other, api.other_tenant, theirs).await;
    possessions(&api, ours).await;
    possessions(&other, theirs).await;
    let before = everything(&other).await;
    let mut succeeded = 0;
    for (number, (method, path, place, named)) in NAMES.iter().enumerate() {
        let route = (*method, *path, *place);
        let mut answers = Vec::new();
        for mark in [theirs, nobodys] {
            let (value, fresh) = (named.of(mark), format!("fresh-{number}-{mark}"));
            let answer = ask(&api, &own, route, &value, &fresh).await;
            succeeded += u32::from(answer.status.is_success());
            assert!(!answer.status.is_server_error(), "{route:?}: {}", answer.body);
            assert!(!answer.body.to_string().contains(&foreign.run), "{route:?}: {}", answer.body);
            // What earlier requests have made here has names with the same marks.
            let (status, text) = without_news(&answer, [&value, &fresh]);
            answers.push((status, text.replace(theirs, "MARK").replace(nobodys, "MARK")));
        }
        assert_eq!(answers[0], answers[1], "{route:?} with a name of another tenant, and with nobody's");
    }
    // Otherwise nothing was looked up at all.
    assert!(succeeded > 40, "only {succeeded} were let in");
    assert_eq!(everything(&other).await, before, "and nothing has happened to the other tenant");
    api.end().await;
}

/// What the tenant can see of itself.
pub async fn everything(api: &Api) -> Vec<Json> {
    let mut seen = Vec::new();
    for path in [
        "/runs?limit=100",
        "/workflows",
        "/schedules",
        "/webhooks",
        "/webhook-endpoints",
        "/keys",
        "/worker-identities",
        "/users",
        "/delegations?all=true",
        "/changes?all=true",
        "/bulk",
        "/approvals",
        "/waits",
        "/dead-letters",
    ] {
        seen.push(Json::of(&api.get(path).await.ok()).unwrap());
    }
    seen
}

/// A worker's message goes to addresses and runs of its own tenant.
#[tokio::test(start_paused = true)]
async fn a_message_reaches_nothing_of_another_tenant() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let foreign = Things::of(&other, api.other_tenant, "theirs").await;
    let wait = plan(json!([{ "key": "w", "kind": "wait", "signal": { "type": "go" } }]));
    let waiting = other.post("/runs", json!({ "plan": wait })).await.text("run_id");
    let before = everything(&other).await;
    let nobodys = |id: &str| super::neighbour(id);
    for (known, unknown) in [
        (format!("webhook:{}", foreign.outbound), format!("webhook:{}", nobodys(&foreign.outbound))),
        (format!("signal:{waiting}/go"), format!("signal:{}/go", nobodys(&waiting))),
    ] {
        let mut answers = Vec::new();
        for destination in [known, unknown] {
            api.start(json!([task("a")])).await;
            let session = api.register().await;
            let assignment = api.poll(&session).await;
            let message = json!({ "destination": destination, "payload": { "by": "us" } });
            let waits = json!({ "status": "waiting", "signal": "stop", "outbound": [message] });
            let answer = api.report(&session, &assignment, waits).await;
            answers.push(without_news(&answer, [&destination, &session]));
        }
        assert_eq!(answers[0], answers[1]);
    }
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert_eq!(everything(&other).await, before, "nothing has come to the other tenant");
    api.end().await;
}

/// Whether there is a tenant, or a person in it, cannot be found out by signing in.
#[tokio::test]
async fn a_stranger_learns_no_names_of_tenants_or_people() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let account = json!({ "name": "ada", "roles": ["viewer"], "password": "correct horse battery" });
    other.post("/users", account).await.ok();
    let mut answers = Vec::new();
    for (tenant, name) in [("two", "ada"), ("two", "eve"), ("three", "ada"), ("three", "eve")] {
        for (path, by) in [("/api/v1/auth/login", None), ("/api/v1/auth/token", Some("password"))] {
            let mut body = json!({ "tenant": tenant, "name": name, "password": "a guess or two" });
            if let Some(by) = by {
                body["by"] = json!(by);
            }
            let request = axum::http::Request::post(path)
                .header("host", "localhost")
                .header("content-type", "application/json")
                .body(axum::body::Body::from(body.to_string()));
            let answer = api.ask(request.unwrap()).await;
            assert_eq!(answer.problem(), (401, "LOGIN_FAILED"), "{tenant} {name}");
            answers.push(answer.body.to_string());
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    api.end().await;
}
