//! The description is complete, unambiguous and up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::harness::{Api, attempt, completed, plan, task};
use crate::set_up::intent;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> Value {
    serde_json::from_str(interlock_server::openapi::text()).unwrap()
}

/// Every operation, as its path, its method and what the description says of it.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().unwrap().iter().map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .collect()
}

/// Holds a file of the repository against what it must be, or makes it so.
fn hold_fresh(file: &str, fresh: &str) {
    let path = root().join(file);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, fresh).unwrap();
    }
    let copy = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(copy == fresh, "{file} is stale: run the test with UPDATE_REFERENCE=1 and commit it");
}

#[test]
fn the_copy_in_the_reference_is_fresh() {
    hold_fresh("docs/reference/openapi.json", &format!("{}\n", interlock_server::openapi::text()));
}

#[test]
fn the_server_knows_the_queries_of_the_description() {
    let document = document();
    let mut fresh = "# What queries may hold, and in which form. Made by the tests of the description.\n".to_owned();
    for (path, method, operation) in operations(&document) {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let of_query: Vec<_> = parameters.filter(|parameter| parameter["in"] == "query").collect();
        if of_query.is_empty() {
            continue;
        }
        write!(fresh, "{} {path}", method.to_uppercase()).unwrap();
        for parameter in of_query {
            write!(fresh, " {}:{}", parameter["name"].as_str().unwrap(), form(&parameter["schema"])).unwrap();
        }
        fresh.push('\n');
    }
    hold_fresh("crates/server/src/openapi/queries.txt", &fresh);
}

/// The form of a value, as the check of queries tells them apart.
fn form(schema: &Value) -> &'static str {
    let named = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    match (named, schema["type"].as_str()) {
        (Some("Timestamp"), _) => "instant",
        (Some("Millis"), _) => "span",
        (_, Some("integer")) => "whole",
        (_, Some("boolean")) => "flag",
        (_, Some("array")) => "list",
        _ => "text",
    }
}

#[test]
fn every_operation_is_told_apart_and_explained() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let tags: BTreeSet<_> = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str()).collect();
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} is there twice");
        assert!(operation["summary"].is_string(), "{method} {path} has no doc comment");
        let tag = operation["tags"][0].as_str();
        assert!(tags.contains(&tag), "{method} {path}: the tag {tag:?} stands in no list of tags");
        let statuses: Vec<_> = operation["responses"].as_object().unwrap().keys().collect();
        assert!(statuses.iter().any(|status| status.starts_with('2') || *status == "101"), "{method} {path}");
        for placeholder in path.split('/').filter_map(|part| part.strip_prefix('{')) {
            let name = placeholder.trim_end_matches('}');
            let parameters = operation["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|parameter| parameter["name"] == name), "{method} {path}: {name}");
        }
    }
}

/// A browser can set no header on a WebSocket, and on every other request it can.
#[tokio::test(start_paused = true)]
async fn only_websockets_take_a_token_in_the_query() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        let takes = parameters.any(|parameter| parameter["in"] == "query" && parameter["name"] == "token");
        assert_eq!(takes, path.starts_with("/ws/"), "{method} {path}");
    }
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let one_run = format!("/runs/{run}/events/stream");
    for path in ["/events/stream", &one_run, &format!("/runs/{run}/steps/a/output/stream")] {
        assert_eq!(api.get(path).await.status, 200, "{path}");
        let refused = api.get(&format!("{path}?token={}", api.key)).await;
        assert_eq!(refused.problem(), (400, "REQUEST_INVALID"), "{path}");
        assert!(refused.text("detail").contains("no parameter `token`"), "{path}: {}", refused.body);
    }
    api.end().await;
}

/// Every reference resolves: a type that is not registered would leave a hole.
#[test]
fn no_reference_leads_nowhere() {
    fn walk<'a>(node: &'a Value, found: &mut BTreeSet<&'a str>) {
        match node {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| walk(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let document = document();
    let mut references = BTreeSet::new();
    walk(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference} is not there");
    }
}

/// A route that is added past `routes!` would be missing from the description, so nothing is.
#[test]
fn every_route_is_described() {
    fn sources(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else {
                found.insert(path.clone(), std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    sources(&root().join("crates/server/src/routes"), &mut files);
    for (file, text) in &files {
        for plain in [".route(", ".route_service(", ".nest(", ".nest_service("] {
            assert!(!text.contains(plain), "{}: {plain}…) bypasses the description; use routes!", file.display());
        }
    }
    let handlers: usize = files.values().map(|text| text.matches("#[utoipa::path(").count()).sum();
    assert_eq!(operations(&document()).len(), handlers, "a handler is annotated but not routed");
}

#[test]
fn every_code_is_described_and_every_route_is_in_the_reference() {
    let document = document();
    let of_a_status = |name: &str| name.strip_prefix("Problem").is_some_and(|status| status.parse::<u16>().is_ok());
    let described: BTreeSet<&str> = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| of_a_status(name))
        .flat_map(|(_, schema)| schema["allOf"][1]["properties"]["code"]["enum"].as_array().unwrap())
        .filter_map(Value::as_str)
        .collect();
    let page = std::fs::read_to_string(root().join("docs/reference/errors.md")).unwrap();
    for row in page.lines().filter_map(|line| line.strip_prefix("| `")) {
        let mut cells = row.split(" | ");
        let (code, status) = (cells.next().unwrap().trim_end_matches('`'), cells.next().unwrap());
        if status.parse::<u16>().is_ok() {
            assert!(described.contains(code), "{code}");
        }
    }
    let page = std::fs::read_to_string(root().join("docs/reference/http.md")).unwrap();
    for (path, method, _) in operations(&document) {
        let short = path.strip_prefix("/api/v1").unwrap_or(path);
        let call = format!("`{} {short}", method.to_uppercase());
        assert!(page.contains(&call), "docs/reference/http.md does not mention {call}`");
    }
}

/// Every request can be too long: schemas of queries allow texts that, encoded, do not fit into a head.
#[test]
fn every_operation_may_answer_that_the_head_is_too_long() {
    let document = document();
    for (path, method, operation) in operations(&document) {
        let answer = resolved(&operation["responses"]["431"], &document);
        assert!(
            answer["description"].as_str().is_some_and(|text| text.contains("64 KiB")),
            "{method} {path}: {answer}"
        );
    }
}

/// A client learns from the description which codes it has to deal with: those of the operation, not all that there are.
#[test]
fn every_refusal_names_the_codes_of_its_operation() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    for (path, method, operation) in operations(&document) {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            if !status.starts_with(['4', '5']) {
                continue;
            }
            let at = format!("{method} {path} {status}");
            let answer = resolved(answer, &document);
            // The connection answers it, before there is a request.
            if status == "431" {
                assert!(answer.get("content").is_none(), "{at}");
                continue;
            }
            let codes = answer["x-codes"].as_array().unwrap_or_else(|| panic!("{at}: add its codes to codes.txt"));
            let problem = &answer["content"]["application/problem+json"];
            let schema = problem["schema"]["$ref"].as_str().unwrap_or_default();
            assert_eq!(schema, format!("#/components/schemas/Problem{status}"), "{at}");
            let known = schemas[format!("Problem{status}")]["allOf"][1]["properties"]["code"]["enum"].as_array();
            let known = known.unwrap();
            assert!(codes.iter().all(|code| known.contains(code)), "{at}: {codes:?}");
            assert!(codes.contains(&problem["example"]["code"]), "{at}: {}", problem["example"]);
            assert!(known.len() < 8 || codes.len() < known.len(), "{at} names every code that there is");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_description_and_its_page_are_open_to_everybody() {
    let api = Api::new().await;
    for (path, media_type) in [
        ("/openapi.json", "application/json"),
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/page.css", "text/css; charset=utf-8"),
        ("/docs/page.js", "text/javascript; charset=utf-8"),
    ] {
        let response = api.raw(Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()[header::CONTENT_TYPE]),
            (200, &media_type.parse().unwrap())
        );
    }
    api.end().await;
}

#[test]
fn signing_in_asks_for_no_token_and_a_signalled_start_is_described() {
    let document = document();
    for path in ["/api/v1/auth/login", "/api/v1/auth/token"] {
        assert_eq!(document["paths"][path]["post"]["security"], serde_json::json!([]), "{path}");
    }
    let logout = &document["paths"]["/api/v1/auth/logout"]["post"]["security"];
    assert_eq!(logout, &serde_json::json!([{ "bearer": [] }]));
    assert!(document["paths"]["/api/v1/runs"]["post"]["responses"]["202"].is_object());
}

/// What a reference leads to.
fn resolved<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    schema["$ref"].as_str().map_or(schema, |reference| document.pointer(&reference[1..]).unwrap())
}

/// Whether a schema says that further fields are refused; of a choice, whether each of its objects does.
fn is_closed(schema: &Value, document: &Value) -> bool {
    let Some(options) = schema["oneOf"].as_array() else { return schema["additionalProperties"] == false };
    let mut objects =
        options.iter().map(|option| resolved(option, document)).filter(|option| option["type"] == "object");
    objects.all(|option| is_closed(option, document))
}

/// Bodies that are read by hand refuse what they do not know, at every depth; and the description says so there.
#[tokio::test(start_paused = true)]
async fn what_refuses_further_fields_says_so() {
    let api = Api::new().await;
    api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let (mut report, mut outcome) = (attempt(&assignment), attempt(&assignment));
    report["outcome"] = completed(json!(1));
    outcome["receipt"] = json!("rcp_000000000000000000000000000000ff");
    outcome["happened"] = json!(true);
    let mut output = attempt(&assignment);
    output["chunks"] = json!([{ "seq": 1, "stream": "stdout", "text": "x" }]);
    let hello = json!({ "worker": "w", "queues": ["q"], "slots": 1 });
    let mut step = task("a");
    step["rollback"] = json!({ "handler": "undo", "verify": { "handler": "look" } });
    step["retry"] = json!({ "max_attempts": 2, "backoff": { "fixed": { "delay": 1 } } });
    let slower = json!({ "max_attempts": 2, "backoff": { "exponential": { "base": 1, "factor": 2.0, "cap": 9 } } });
    let slower = json!({ "key": "b", "kind": "task", "handler": "b", "retry": slower });
    let wait = json!({ "key": "c", "kind": "wait", "signal": { "type": "go" } });
    let start = json!({ "plan": plan(json!([step, slower, wait])) });
    api.post("/runs", start.clone()).await.ok();
    let token = json!({ "by": "password", "name": "a", "password": "p" });
    let agent = |call: &str| format!("/agent/{session}/{call}");
    let document = document();
    let schema =
        |pointer: &str| resolved(document["components"]["schemas"].pointer(pointer).unwrap_or(&Value::Null), &document);
    for (path, body, at, described) in [
        ("/agent/register".to_owned(), &hello, "", "/WorkerHello"),
        (agent("complete-step"), &report, "", "/Report"),
        (agent("complete-step"), &report, "/outcome", "/ReportedOutcome/oneOf/0"),
        (agent("effects"), &intent(&assignment, 0, "keyed"), "", "/EffectIntent"),
        (agent("outcomes"), &outcome, "", "/EffectOutcome"),
        (agent("output"), &output, "", "/OutputBatch"),
        (agent("output"), &output, "/chunks/0", "/OutputChunk"),
        ("/runs".to_owned(), &start, "/plan", "/Plan"),
        ("/runs".to_owned(), &start, "/plan/steps/0", "/StepSpec"),
        ("/runs".to_owned(), &start, "/plan/steps/0/rollback", "/RollbackSpec"),
        ("/runs".to_owned(), &start, "/plan/steps/0/rollback/verify", "/Undo"),
        ("/runs".to_owned(), &start, "/plan/steps/0/retry/backoff", "/Backoff"),
        ("/runs".to_owned(), &start, "/plan/steps/0/retry/backoff/fixed", "/BackoffFixedFixed"),
        ("/runs".to_owned(), &start, "/plan/steps/1/retry/backoff/exponential", "/BackoffExponentialExponential"),
        ("/runs".to_owned(), &start, "/plan/steps/2", "/StepSpecWaitSignal"),
        ("/runs".to_owned(), &start, "/plan/steps/2/signal", "/StepSpecWaitSignalSignal"),
        ("/auth/token".to_owned(), &token, "", "/NewToken/oneOf/0"),
    ] {
        let mut body = body.clone();
        body.pointer_mut(at).unwrap()["surplus"] = json!(1);
        let refused = api.post(&path, body).await;
        assert_eq!(refused.problem(), (400, "REQUEST_INVALID"), "{path}{at}: {}", refused.body);
        // A choice of one field says that there may be no second one, without naming it.
        let is_one_field = matches!(described, "/Undo" | "/Backoff");
        assert!(is_one_field || refused.text("detail").contains("surplus"), "{path}{at}: {}", refused.body);
        assert!(is_closed(schema(described), &document), "{described}: {}", schema(described));
    }
    // What is closed has to know every field that is taken.
    let mut known = BTreeSet::new();
    names(schema("/StepSpec"), &document, &mut known);
    for kind in ["task", "transform", "wait", "approval", "command", "connector", "model"] {
        let step = json!({ "key": "a", "kind": kind, "surplus": 1 });
        let refused = api.post("/runs", json!({ "plan": plan(json!([step])) })).await.text("detail");
        let taken = refused.split_once(" step has ").unwrap_or_else(|| panic!("{refused}")).1;
        let taken: Vec<_> = taken.split(" at line ").next().unwrap().split(", ").collect();
        assert!(taken.len() > 5, "{refused}");
        for field in taken {
            assert!(known.contains(field), "{kind}: `{field}` is not in the description of a step");
        }
    }
    api.end().await;
}

/// The fields that a schema knows, in all its parts.
fn names(schema: &Value, document: &Value, known: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        names(document.pointer(&reference[1..]).unwrap(), document, known);
    }
    known.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    for part in ["allOf", "oneOf", "anyOf"].iter().flat_map(|word| schema[*word].as_array().into_iter().flatten()) {
        names(part, document, known);
    }
}
