//! Every text of a request has a limit in the description, or stands in a list that says why not. The routes take a text of
//! the length that is declared, and refuse a longer one.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::harness::{Api, ApiResponse, plan, task};

const SCHEMAS: &str = "#/components/schemas/";

/// What limits the length of a text, or says which texts there are.
const BOUNDING: &[&str] = &["maxLength", "enum", "const", "format", "pattern"];

const COMPARED: &str = "compared with what is stored, and not stored itself";
const NO_EFFECT: &str = "refused in a plan that comes with the start, whatever it says";
const FILED: &str = "name: filed\nsteps: [{ id: a, task: t }]\n";
const WHOLE_BODY: &str = "the whole body, which has the limit of its route";

/// Texts of requests that no limit of their own is enforced for, beside the sizes of heads and bodies, each with the reason.
/// A parameter stands with its route, or without it where the same holds on every route.
const UNBOUNDED: &[(&str, &str)] = &[
    ("header if-match", COMPARED),
    ("header if-none-match", COMPARED),
    ("header prefer", "what is not understood is passed over, as RFC 7240 says"),
    ("query token", COMPARED),
    ("post /api/v1/slack/interactions/{connection} body", WHOLE_BODY),
    ("post /api/v1/webhooks/{endpoint} body", WHOLE_BODY),
    ("ApprovalRules.approvers[]", NO_EFFECT),
    ("Enrol.token", COMPARED),
    ("IdempotencyRule.key", NO_EFFECT),
    ("NewTokenCode.code", COMPARED),
    ("NewTokenCode.verifier", COMPARED),
    ("SetPassword.old_password", "not read where an admin sets the password of another person"),
    ("StepError.code", "cut to its limit, and not refused: the report must not be lost"),
    ("StepError.message", "cut to its limit, and not refused: the report must not be lost"),
];

fn document() -> Value {
    serde_json::from_str(interlock_server::openapi::text()).unwrap()
}

/// Finds the texts without a limit in what requests are made of, each schema once.
struct TextWalk<'a> {
    schemas: &'a Map<String, Value>,
    seen: BTreeSet<&'a str>,
    found: BTreeSet<String>,
}

impl<'a> TextWalk<'a> {
    fn look(&mut self, node: &'a Value, at: &str) {
        if let Some(name) = node["$ref"].as_str().and_then(|reference| reference.strip_prefix(SCHEMAS)) {
            if self.seen.insert(name) {
                let schemas = self.schemas;
                self.look(&schemas[name], name);
            }
            return;
        }
        let is_text = match &node["type"] {
            Value::Array(types) => types.iter().any(|one| one == "string"),
            one => one == "string",
        };
        if is_text && !BOUNDING.iter().any(|word| node.get(*word).is_some()) {
            self.found.insert(at.to_owned());
        }
        for word in ["oneOf", "anyOf", "allOf"] {
            for part in node[word].as_array().into_iter().flatten() {
                self.look(part, at);
            }
        }
        if let Some(items) = node.get("items") {
            self.look(items, &format!("{at}[]"));
        }
        if let Some(values) = node.get("additionalProperties") {
            self.look(values, &format!("{at}{{}}"));
        }
        for (field, inner) in node["properties"].as_object().into_iter().flatten() {
            self.look(inner, &format!("{at}.{field}"));
        }
    }
}

/// Whether a line of the list is about this text.
fn is_about(line: &str, text: &str) -> bool {
    text == line || text.strip_suffix(line).is_some_and(|route| route.ends_with(' '))
}

#[test]
fn every_text_of_a_request_is_bounded() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut walk = TextWalk { schemas, seen: BTreeSet::new(), found: BTreeSet::new() };
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let (stands_in, name) = (parameter["in"].as_str().unwrap(), parameter["name"].as_str().unwrap());
                walk.look(&parameter["schema"], &format!("{path} {stands_in} {name}"));
            }
            for content in operation["requestBody"]["content"].as_object().into_iter().flat_map(Map::values) {
                walk.look(&content["schema"], &format!("{method} {path} body"));
            }
        }
    }
    assert!(walk.seen.len() > 100, "{:?}", walk.seen);
    let is_listed = |text: &&String| UNBOUNDED.iter().any(|(line, _)| is_about(line, text));
    let unlisted: Vec<_> = walk.found.iter().filter(|text| !is_listed(text)).collect();
    assert!(
        unlisted.is_empty(),
        "no limit is declared for {unlisted:?}: add the one that is enforced to openapi/bounds.rs"
    );
    for (line, _) in UNBOUNDED {
        assert!(walk.found.iter().any(|text| is_about(line, text)), "`{line}` is bounded, or gone: remove its line");
    }
}

/// A text of a request: where its length is declared, among the schemas; the route and the body; where the text stands in
/// the body; how it begins and what it goes on with.
struct Probe {
    declared: &'static str,
    route: String,
    body: Value,
    place: &'static str,
    begins: &'static str,
    goes_on: char,
}

impl Probe {
    fn new(declared: &'static str, route: &str, place: &'static str, body: Value) -> Self {
        Self { declared, route: route.to_owned(), body, place, begins: "", goes_on: 'x' }
    }

    fn of_form(self, begins: &'static str, goes_on: char) -> Self {
        Self { begins, goes_on, ..self }
    }

    async fn send(&self, api: &Api, length: usize) -> ApiResponse {
        let mut body = self.body.clone();
        let rest = self.goes_on.to_string().repeat(length - self.begins.len());
        *body.pointer_mut(self.place).unwrap() = json!(format!("{}{rest}", self.begins));
        api.post(&self.route, body).await
    }
}

/// The greatest length or number that a schema declares.
fn declared(document: &Value, pointer: &str, word: &str) -> usize {
    let schemas = &document["components"]["schemas"];
    let declared = schemas.pointer(pointer).unwrap_or_else(|| panic!("there is no {pointer}"));
    declared[word].as_u64().unwrap_or_else(|| panic!("{pointer} has no {word}")) as usize
}

fn refused(answer: &ApiResponse, what: &str) {
    assert!(answer.status.is_client_error(), "{what}: {} {}", answer.status, answer.body);
}

fn taken(answer: &ApiResponse, what: &str) {
    assert!(answer.status.is_success(), "{what}: {} {}", answer.status, answer.body);
}

fn probes(run: &str) -> Vec<Probe> {
    let start = json!({ "plan": plan(json!([task("a")])), "workspace": "default", "labels": { "team": "" } });
    let about = json!({ "plan": plan(json!([task("a")])), "subject": "" });
    let schedule = |name: &str| json!({ "name": name, "workflow": "bounds", "cron": "0 3 * * 1" });
    let inbound = |name: &str| json!({ "name": name, "source": "generic", "header": "x-signature", "secret": "" });
    let outbound = json!({ "url": "https://desk.example.org/hooks", "description": "" });
    let unsealed = json!({ "name": "", "source": "generic" });
    let headed = json!({ "name": "headed", "source": "generic", "header": "" });
    let person = |name: &str| json!({ "name": name, "roles": ["viewer"], "display_name": "Ada", "groups": ["sre"] });
    let worker = json!({ "name": "w", "terms": { "environments": ["*"], "segments": [""] } });
    let hello = json!({ "worker": "", "queues": ["default"], "slots": 1 });
    let signal = json!({ "type": "go", "key": "k", "source_id": "" });
    let unnamed = json!({ "type": "go", "key": "k" });
    let gate = json!([{ "key": "g", "kind": "approval", "message": "", "approvers": ["sre"] }]);
    let gate = json!({ "plan": plan(gate) });
    let erase = json!({ "person": "ada", "reason": "asked for" });
    let ticket = json!({ "ticket_id": "", "runbook_id": "bounds" });
    vec![
        Probe::new("/Signal/properties/type", "/signals", "/type", unnamed.clone()),
        Probe::new("/Signal/properties/key", "/signals", "/key", unnamed),
        Probe::new("/Signal/properties/source_id", "/signals", "/source_id", signal),
        Probe::new("/CreateExecution/properties/ticket_id", "/executions", "/ticket_id", ticket),
        Probe::new("/NewSchedule/properties/name", "/schedules", "/name", schedule("")),
        Probe::new("/NewSchedule/properties/cron", "/schedules", "/cron", schedule("spaced")).of_form("0 3 * * 1", ' '),
        Probe::new("/NewOutbound/properties/url", "/webhook-endpoints", "/url", outbound.clone())
            .of_form("https://desk.example.org/", 'x'),
        Probe::new("/NewOutbound/properties/description", "/webhook-endpoints", "/description", outbound),
        Probe::new("/NewInbound/properties/name", "/webhooks", "/name", unsealed),
        Probe::new("/NewInbound/properties/header", "/webhooks", "/header", headed),
        Probe::new("/NewInbound/properties/secret", "/webhooks", "/secret", inbound("sealed")),
        Probe::new("/EraseDetails/properties/person", "/audit/erasures", "/person", erase.clone()),
        Probe::new("/EraseDetails/properties/reason", "/audit/erasures", "/reason", erase),
        Probe::new("/CreateUser/properties/name", "/users", "/name", person("")),
        Probe::new("/CreateUser/properties/display_name", "/users", "/display_name", person("ada")),
        Probe::new("/CreateUser/properties/groups/items", "/users", "/groups/0", person("bob")),
        Probe::new("/CreateKey/properties/name", "/keys", "/name", json!({ "name": "", "roles": ["viewer"] })),
        Probe::new("/StartRunPlan/properties/subject", "/runs", "/subject", about).of_form("plan:", 'x'),
        Probe::new("/StartRunPlan/properties/workspace", "/runs", "/workspace", start.clone()),
        Probe::new("/StartRunPlan/properties/labels/additionalProperties", "/runs", "/labels/team", start.clone()),
        Probe::new("/StepSpecTask/properties/key", "/runs", "/plan/steps/0/key", start.clone()),
        Probe::new("/StepSpecTask/properties/handler", "/runs", "/plan/steps/0/handler", start.clone()),
        Probe::new("/Plan/properties/workflow", "/runs", "/plan/workflow", start),
        Probe::new("/StepSpecApproval/properties/message", "/runs", "/plan/steps/0/message", gate.clone()),
        Probe::new("/StepSpecApproval/properties/approvers/items", "/runs", "/plan/steps/0/approvers/0", gate),
        Probe::new("/Cancel/properties/reason", &format!("/runs/{run}/cancel"), "/reason", json!({ "reason": "" })),
        Probe::new("/File/properties/source", "/workflows", "/source", json!({ "source": "" }))
            .of_form("name: padded\nsteps: [{ id: a, task: t }]\n#", 'x'),
        Probe::new("/File/properties/file", "/workflows", "/file", json!({ "source": FILED, "file": "" })),
        Probe::new("/WorkerHello/properties/worker", "/agent/register", "/worker", hello.clone()),
        Probe::new("/WorkerHello/properties/queues/items", "/agent/register", "/queues/0", named(hello)),
        Probe::new("/WorkerTerms/properties/segments/items", "/worker-identities", "/terms/segments/0", worker),
    ]
}

/// A worker that says its name.
fn named(mut hello: Value) -> Value {
    hello["worker"] = json!("named");
    hello
}

#[tokio::test(start_paused = true)]
async fn a_text_of_the_declared_length_is_taken_and_a_longer_one_is_refused() {
    let api = Api::new().await;
    api.post("/workflows", json!({ "source": "name: bounds\nsteps: [{ id: a, task: t }]\n" })).await.ok();
    let run = api.start(json!([task("a")])).await;
    let document = document();
    for probe in probes(&run) {
        let length = declared(&document, probe.declared, "maxLength");
        refused(&probe.send(&api, length + 1).await, probe.declared);
        taken(&probe.send(&api, length).await, probe.declared);
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_the_declared_length_is_taken_and_a_longer_one_is_refused() {
    let api = Api::new().await;
    let document = document();
    let names = |count: usize| (0..count).map(|number| format!("n{number}")).collect::<Vec<_>>();

    let queues = declared(&document, "/WorkerHello/properties/queues", "maxItems");
    let hello = |count: usize| json!({ "worker": "w", "queues": names(count), "slots": 1 });
    refused(&api.post("/agent/register", hello(queues + 1)).await, "queues");
    taken(&api.post("/agent/register", hello(queues)).await, "queues");

    let groups = declared(&document, "/CreateUser/properties/groups", "maxItems");
    let person = |count: usize| json!({ "name": "ada", "roles": ["viewer"], "groups": names(count) });
    refused(&api.post("/users", person(groups + 1)).await, "groups");
    taken(&api.post("/users", person(groups)).await, "groups");

    let slots = declared(&document, "/WorkerHello/properties/slots", "maximum");
    let hello = |slots: usize| json!({ "worker": "w", "queues": ["default"], "slots": slots });
    refused(&api.post("/agent/register", hello(slots + 1)).await, "slots");
    taken(&api.post("/agent/register", hello(slots)).await, "slots");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_parameter_of_the_declared_length_is_taken_and_a_longer_one_is_refused() {
    let api = Api::new().await;
    let document = document();
    let declared = |route: &str, method: &str, name: &str| {
        let parameters = document["paths"][route][method]["parameters"].as_array().unwrap();
        let schema = &parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"];
        let text = schema.get("items").unwrap_or(schema);
        text["maxLength"].as_u64().unwrap_or_else(|| panic!("{route} {name}: {text}")) as usize
    };
    for (route, name) in [
        ("/runs", "subject"),
        ("/runs", "workflow"),
        ("/runs", "label"),
        ("/runs", "text"),
        ("/stats", "trigger"),
        ("/approvals", "workflow"),
        ("/approvals", "subject"),
        ("/approvals", "approvers"),
        ("/audit", "type"),
        ("/audit", "actor"),
        ("/audit", "subject"),
        ("/schedules", "after"),
        ("/slack/links", "after"),
        ("/waits", "type"),
        ("/workflows", "after"),
    ] {
        let length = declared(&format!("/api/v1{route}"), "get", name);
        // The longest label has a name and a value of the same length.
        let text = |length: usize| match name {
            "label" => format!("{}:{}", "n".repeat(length / 2), "v".repeat(length - 1 - length / 2)),
            _ => "x".repeat(length),
        };
        refused(&api.get(&format!("{route}?{name}={}", text(length + 2))).await, name);
        refused(&api.get(&format!("{route}?{name}={}", text(length + 1))).await, name);
        taken(&api.get(&format!("{route}?{name}={}", text(length))).await, name);
    }
    let length = declared("/api/v1/signals", "post", "idempotency-key");
    let signal = json!({ "type": "go", "key": "k" });
    let quoted = |length: usize| format!("\"{}\"", "k".repeat(length - 2));
    let send =
        async |key: String| api.post_with("/signals", signal.clone(), &[("idempotency-key", key.as_str())]).await;
    refused(&send(quoted(length + 1)).await, "idempotency-key");
    taken(&send(quoted(length)).await, "idempotency-key");
    api.end().await;
}
