//! Applying workflows, looking at them, starting them.

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, completed};

const FILE: &str = "name: deploy
inputs: { service: { type: string, required: true } }
subject: ${{ inputs.service }}
steps:
  - { id: build, task: ci.build, with: { service: '${{ inputs.service }}' } }
";

async fn put(api: &Api, name: &str, source: &str, headers: &[(&str, &str)]) -> ApiResponse {
    let mut request = Request::put(format!("/api/v1/workflows/{name}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.ask(request.body(Body::from(json!({ "source": source }).to_string())).unwrap()).await
}

async fn get_with(api: &Api, path: &str, name: &str, value: &str) -> ApiResponse {
    let request = Request::get(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(name, value);
    api.ask(request.body(Body::empty()).unwrap()).await
}

fn tag(answer: &ApiResponse) -> String {
    answer.headers[header::ETAG].to_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_workflow_is_applied_looked_at_and_started() {
    let api = Api::new().await;
    let applied = api.post("/workflows", json!({ "source": FILE, "file": "deploy.yaml" })).await;
    assert_eq!((applied.status.as_u16(), &applied.body["version"]), (201, &json!(1)));
    assert_eq!(applied.headers[header::LOCATION], "/api/v1/workflows/deploy");
    let same = put(&api, "deploy", FILE, &[]).await;
    assert_eq!((same.status.as_u16(), &same.body["created"]), (200, &json!(false)));
    assert_eq!(tag(&same), tag(&applied));

    let changed = format!("{FILE}timeout: 5m\n");
    let refused = put(&api, "deploy", &changed, &[("if-match", "\"9-0\"")]).await;
    assert_eq!(refused.problem(), (412, "WORKFLOW_CHANGED"));
    let refused = put(&api, "deploy", &changed, &[("if-none-match", "*")]).await;
    assert_eq!(refused.problem(), (412, "WORKFLOW_CHANGED"));
    let second = put(&api, "deploy", &changed, &[("if-match", &tag(&applied))]).await;
    assert_eq!((second.status.as_u16(), &second.body["version"]), (201, &json!(2)));
    assert_eq!(put(&api, "other", FILE, &[]).await.problem(), (422, "WORKFLOW_NAME_MISMATCH"));

    let shown = api.get("/workflows/deploy").await;
    assert_eq!((&shown.body["version"], &shown.body["source"]), (&json!(2), &json!(changed)));
    assert_eq!(shown.body["definition"]["timeout"], "5m");
    let known = get_with(&api, "/workflows/deploy", "if-none-match", &tag(&shown)).await;
    assert_eq!(known.status.as_u16(), 304);
    let first = api.get("/workflows/deploy/versions/1").await.ok();
    assert_eq!((&first["version"], &first["source"]), (&json!(1), &json!(FILE)));
    let versions = api.get("/workflows/deploy/versions?limit=1").await.ok();
    assert_eq!((&versions["versions"][0]["version"], &versions["next_before"]), (&json!(2), &json!(2)));
    let listed = api.get("/workflows?limit=1").await.ok();
    assert_eq!((&listed["workflows"][0]["workflow"], listed.get("next_after")), (&json!("deploy"), None));

    let start = json!({ "workflow": "deploy", "inputs": { "service": "shop" } });
    let run = api.post("/runs", start.clone()).await.ok()["run_id"].as_str().unwrap().to_owned();
    let shown = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&shown["workflow_version"], &shown["subject"]), (&json!(2), &json!("shop")));
    assert!(shown["deadline_at"].is_i64());
    assert_eq!(api.post("/runs", start).await.problem(), (409, "RUN_SUBJECT_BUSY"));
    let session = api.register().await;
    let work = api.poll(&session).await;
    assert_eq!((&work["handler"], &work["input"]), (&json!("ci.build"), &json!({ "service": "shop" })));
    api.report(&session, &work, completed(json!(1))).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_file_is_said_with_its_places() {
    let api = Api::new().await;
    let broken = FILE.replace("task: ci.build", "taks: ci.build");
    let refused = api.post("/workflows", json!({ "source": broken, "file": "deploy.yaml" })).await;
    assert_eq!(refused.problem(), (422, "WORKFLOW_INVALID"));
    let first = &refused.body["diagnostics"][0];
    assert_eq!((&first["line"], &first["code"]), (&json!(5), &json!("step-kind")), "{first}");
    let field =
        refused.body["diagnostics"].as_array().unwrap().iter().find(|one| one["code"] == "unknown-field").unwrap();
    assert_eq!((&field["line"], &field["column"]), (&json!(5), &json!(18)));
    assert_eq!(field["help"], "did you mean `task`?");
    assert!(refused.text("detail").starts_with("deploy.yaml:5:"), "{}", refused.body);

    let found = api.post("/workflows/validate", json!({ "source": broken })).await.ok();
    assert_eq!((&found["valid"], found["diagnostics"].as_array().unwrap().len()), (&json!(false), 2));
    let command = "name: c\nprofile: dev-flex\nsteps: [{ id: a, run: [/bin/true], idempotency: { key: k } }]\n";
    let found = api.post("/workflows/validate", json!({ "source": command })).await.ok();
    assert_eq!(found["valid"], json!(false), "{found}");
    let remark = &found["diagnostics"][0];
    assert_eq!((&remark["severity"], &remark["code"]), (&json!("error"), &json!("no-executor")), "{found}");
    let refused = api.post("/workflows", json!({ "source": command })).await;
    assert_eq!(
        (refused.problem(), &refused.body["diagnostics"][0]["code"]),
        ((422, "WORKFLOW_INVALID"), &json!("no-executor"))
    );
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn refusals_name_what_is_missing() {
    let api = Api::new().await;
    assert_eq!(api.get("/workflows/nope").await.problem(), (404, "WORKFLOW_NOT_FOUND"));
    assert_eq!(api.get("/workflows/nope/versions").await.problem(), (404, "WORKFLOW_NOT_FOUND"));
    let no_version = api.get("/workflows/nope/versions/x").await;
    assert_eq!(no_version.problem(), (404, "WORKFLOW_NOT_FOUND"));
    assert_eq!(no_version.body["detail"], "`x` is no version: versions are numbers, 1, 2, …");
    let foreign = put(&api, "nope", "name: nope\nsteps: [{ id: a, task: a }]\n", &[("if-match", "\"nope\"")]).await;
    assert_eq!(foreign.problem(), (412, "WORKFLOW_CHANGED"), "a tag that was never ours matches nothing");
    assert_eq!(api.post("/workflows/nope/disable", json!({})).await.problem(), (404, "WORKFLOW_NOT_FOUND"));
    assert_eq!(api.post("/runs", json!({ "workflow": "nope" })).await.problem(), (404, "WORKFLOW_NOT_FOUND"));
    assert_eq!(api.post("/runs", json!({})).await.problem(), (400, "REQUEST_INVALID"));
    api.post("/workflows", json!({ "source": FILE })).await.ok();
    let bad = api.post("/runs", json!({ "workflow": "deploy", "inputs": { "servce": 1 } })).await;
    assert_eq!(bad.problem(), (422, "INPUT_INVALID"));
    assert!(bad.text("detail").contains("did you mean `service`?"), "{}", bad.body);
    api.post("/workflows/deploy/disable", json!({})).await.ok();
    let start = json!({ "workflow": "deploy", "inputs": { "service": "x" } });
    assert_eq!(api.post("/runs", start.clone()).await.problem(), (409, "WORKFLOW_DISABLED"));
    api.post("/workflows/deploy/enable", json!({})).await.ok();
    api.post("/runs", start).await.ok();
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn another_tenants_workflow_does_not_exist() {
    let api = Api::new().await;
    api.post("/workflows", json!({ "source": FILE })).await.ok();
    let stranger = api.with_key(&api.other_key);
    for path in ["/workflows/deploy", "/workflows/deploy/versions", "/workflows/deploy/versions/1"] {
        let (theirs, nobodys) = (stranger.get(path).await, stranger.get(&path.replace("deploy", "deplox")).await);
        assert_eq!(theirs.problem(), (404, "WORKFLOW_NOT_FOUND"));
        assert_eq!(theirs.body.to_string().replace("deploy", "deplox"), nobodys.body.to_string());
    }
    assert_eq!(stranger.get("/workflows").await.ok()["workflows"], json!([]));
    let start = json!({ "workflow": "deploy", "inputs": { "service": "x" } });
    assert_eq!(stranger.post("/runs", start).await.problem(), (404, "WORKFLOW_NOT_FOUND"));
    // The same name is theirs to take.
    assert_eq!(stranger.post("/workflows", json!({ "source": FILE })).await.ok()["version"], 1);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_schema_is_served_to_editors() {
    let api = Api::new().await;
    let request = Request::get("/schema/workflow.json").body(Body::empty()).unwrap();
    let schema: Value = api.ask(request).await.ok();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["steps"].is_object());
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_walk_says_what_would_be_done_and_does_nothing() {
    let api = Api::new().await;
    let source = "name: walked\ninputs: { n: { type: integer, required: true } }\nsubject: s-${{ inputs.n }}\nsteps:\n\
                  - { id: big, if: inputs.n > 5, task: a, with: { n: \"${{ inputs.n }}\" }, rollback: { task: undo } }\n\
                  - { id: sum, transform: \"${{ inputs.n + 1 }}\" }\n\
                  - { id: after, if: steps.big.output.ok, task: b }\n";
    let walked = api.post("/workflows/plan", json!({ "source": source, "inputs": { "n": 3 } })).await.ok();
    let typed: interlock_protocol::workflows::Walk = serde_json::from_value(walked.clone()).unwrap();
    let would: Vec<_> = typed.steps.iter().map(|step| step.would.as_str()).collect();
    assert_eq!(would[..2], ["skip", "run"]);
    assert_eq!((&walked["subject"], &walked["steps"][1]["output"]), (&json!("s-3"), &json!(4)));
    assert_eq!(api.get("/workflows").await.ok()["workflows"], json!([]), "nothing is stored");

    api.post("/workflows", json!({ "source": source })).await.ok();
    for version in [json!(null), json!(1)] {
        let body = json!({ "workflow": "walked", "version": version, "inputs": { "n": 7 } });
        let walked = api.post("/workflows/plan", body).await.ok();
        let steps = &walked["steps"];
        assert_eq!((&steps[0]["would"], &steps[0]["input"]), (&json!("run"), &json!({ "n": 7 })));
        assert_eq!((&steps[2]["would"], &steps[0]["undone_by"]), (&json!("depends"), &json!("task undo")));
    }
    for (body, problem) in [
        (json!({ "workflow": "walked", "inputs": {} }), (422, "INPUT_INVALID")),
        (json!({ "workflow": "walked", "version": 2 }), (404, "WORKFLOW_NOT_FOUND")),
        (json!({ "workflow": "nobody" }), (404, "WORKFLOW_NOT_FOUND")),
        (json!({ "source": "name: x" }), (422, "WORKFLOW_INVALID")),
        (json!({ "source": source, "workflow": "walked" }), (400, "REQUEST_INVALID")),
        (json!({}), (400, "REQUEST_INVALID")),
    ] {
        assert_eq!(api.post("/workflows/plan", body.clone()).await.problem(), problem, "{body}");
    }
    assert_eq!(api.get("/runs").await.ok()["runs"], json!([]), "nothing is started");
    // Rounded, the walk would show another number than the run would get.
    let rounded = r#"{"workflow":"walked","inputs":{"n":3,"list":[{"x":18446744073709551616}]}}"#;
    let request = Request::post("/api/v1/workflows/plan")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, "application/json");
    let refused = api.ask(request.body(Body::from(rounded)).unwrap()).await;
    assert_eq!(refused.problem(), (422, "INPUT_INVALID"));
    assert!(refused.text("detail").contains("`list[0].x`: 18446744073709551616"), "{}", refused.body);
    api.end().await;
}
