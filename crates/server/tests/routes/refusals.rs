//! What is not understood is refused, and says why.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::tenant::identity::Permission;
use interlock_server::matrix;
use serde_json::json;

use crate::harness::{Api, ApiResponse, plan, task};

async fn raw(api: &Api, content_type: &str, body: String) -> ApiResponse {
    let request = Request::post("/api/v1/runs")
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body));
    api.ask(request.unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn bodies_that_cannot_be_read() {
    let api = Api::new().await;
    let broken = raw(&api, "application/json", "{".into()).await;
    assert_eq!(broken.problem(), (400, "REQUEST_INVALID"));
    assert!(broken.text("detail").contains("line 1 column 1"), "{}", broken.body);

    let misspelt = api.post("/runs", json!({ "plan": plan(json!([task("a")])), "lables": {} })).await;
    assert_eq!(misspelt.problem(), (400, "REQUEST_INVALID"));
    assert!(misspelt.text("detail").contains("unknown field `lables`"), "{}", misspelt.body);

    for (body, says) in [
        (r#"{"workflow":1}"#, "`workflow`: expected a text, found the number `1` at line 1"),
        (r#"{"workflow":"w","labels":{"a":"b","c":1}}"#, "`labels.c`: expected a text, found the number `1`"),
        (r#"{"workflow":"w","on_conflict":"x"}"#, "`on_conflict`: unknown value `x`, expected one of"),
        (r#"{"workflow":"w","inputs":{"a":[{"b":1,"b":2}]}}"#, "duplicate field `b` at line 1"),
        (r#"{"workflow":"w","labels":{"a":"b","a":"c"}}"#, "duplicate field `a` at line 1"),
        (
            r#"{"plan":{"workflow":"w","version":1,"steps":[{"key":"a","kind":"task","handler":"a","rules":{"critcal":true}}]}}"#,
            "unknown field `critcal`",
        ),
    ] {
        let refused = raw(&api, "application/json", body.into()).await;
        assert_eq!(refused.problem(), (400, "REQUEST_INVALID"));
        assert!(refused.text("detail").contains(says), "{}", refused.body);
    }

    let form = raw(&api, "text/plain", "{}".into()).await;
    assert_eq!(form.problem(), (415, "CONTENT_TYPE_INVALID"));

    let huge = raw(&api, "application/json", "x".repeat(9 << 20)).await;
    assert_eq!(huge.problem(), (413, "PAYLOAD_TOO_LARGE"));

    let odd = api.get("/runs?colour=red").await;
    assert_eq!(odd.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn requests_that_ask_for_what_cannot_be() {
    let api = Api::new().await;
    let empty = api.post("/runs", json!({ "plan": plan(json!([])) })).await;
    assert_eq!(empty.problem(), (422, "WORKFLOW_INVALID"));
    let twice = api.post("/runs", json!({ "plan": plan(json!([task("a"), task("a")])) })).await;
    assert_eq!(twice.problem(), (422, "WORKFLOW_INVALID"));
    assert!(twice.text("detail").contains("step 2 (`a`)"), "{}", twice.body);
    let large = json!({ "plan": plan(json!([task("a")])), "inputs": "x".repeat(2 << 20) });
    assert_eq!(api.post("/runs", large).await.problem(), (413, "PAYLOAD_TOO_LARGE"));
    let elsewhere = json!({ "plan": plan(json!([task("a")])), "tenant": api.other_tenant });
    assert_eq!(api.post("/runs", elsewhere).await.problem(), (400, "REQUEST_INVALID"), "the key names the tenant");
    api.end().await;
}

/// A run of another tenant answers exactly like one that does not exist.
#[tokio::test(start_paused = true)]
async fn runs_that_are_not_there() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let foreign = other.start(json!([task("a")])).await;
    let because = json!({ "reason": "x" });
    for run in [foreign.as_str(), "run_000000000000000000000000000000ff", "7", "ten_000000000000000000000000000000ff"] {
        for read in ["", "/steps", "/events"] {
            let answer = api.get(&format!("/runs/{run}{read}")).await;
            assert_eq!(answer.problem(), (404, "RUN_NOT_FOUND"), "{run}{read}");
        }
        for verb in ["cancel", "pause", "skip", "rollback"] {
            let answer = api.post(&format!("/runs/{run}/{verb}"), because.clone()).await;
            assert_eq!(answer.problem(), (404, "RUN_NOT_FOUND"), "{run}/{verb}");
        }
        for verb in ["resume", "retry", "restart"] {
            let answer = api.post(&format!("/runs/{run}/{verb}"), json!({})).await;
            assert_eq!(answer.problem(), (404, "RUN_NOT_FOUND"), "{run}/{verb}");
        }
        let answer = api.post(&format!("/runs/{run}/signals"), json!({ "type": "go" })).await;
        assert_eq!(answer.problem(), (404, "RUN_NOT_FOUND"), "{run}/signals");
    }
    assert_eq!(other.get(&format!("/runs/{foreign}")).await.status, 200);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn addresses_and_methods_that_are_not_there() {
    let api = Api::new().await;
    assert_eq!(api.get("/nothing").await.problem(), (404, "ROUTE_NOT_FOUND"));
    assert_eq!(api.get("/signals").await.problem(), (405, "METHOD_NOT_ALLOWED"));
    api.end().await;
}

/// Every guarded route, whether or not its handler reads a query.
#[tokio::test(start_paused = true)]
async fn a_query_that_is_not_described_is_refused_on_every_route() {
    let api = Api::new().await;
    let mut asked = 0;
    for line in matrix::MATRIX {
        // Sockets have tests of their own, and public routes take any query.
        if line.needs == Permission::Public || !line.path.starts_with("/api/v1/") {
            continue;
        }
        let path = line.path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        let key = if line.needs == Permission::Install { &api.in_charge().await.key } else { &api.key };
        let request = Request::builder()
            .method(line.method)
            .uri(format!("{path}?colour=red"))
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {key}"))
            .header(header::CONTENT_TYPE, "application/json");
        let answer = api.ask(request.body(Body::from("{}")).unwrap()).await;
        assert_eq!(answer.problem(), (400, "REQUEST_INVALID"), "{} {path}", line.method);
        assert!(answer.text("detail").contains("no parameter `colour`"), "{} {path}: {}", line.method, answer.body);
        asked += 1;
    }
    assert!(asked > 80, "{asked} routes");
    api.end().await;
}

/// The same number means the same everywhere; a limit out of bounds is refused, not cut to another page size.
#[tokio::test(start_paused = true)]
async fn a_limit_is_within_its_bounds_on_every_list() {
    let api = Api::new().await;
    let document: serde_json::Value = serde_json::from_str(interlock_server::openapi::text()).unwrap();
    let mut lists = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item["get"]["parameters"].as_array().into_iter().flatten();
        let Some(limit) = parameters.into_iter().find(|parameter| parameter["name"] == "limit") else { continue };
        assert_eq!((&limit["schema"]["minimum"], &limit["schema"]["maximum"]), (&json!(1), &json!(500)), "{path}");
        // The query is looked at before what the path names.
        let path = path.trim_start_matches("/api/v1").split('/');
        let path: Vec<_> = path.map(|part| if part.starts_with('{') { "x" } else { part }).collect();
        let path = path.join("/");
        for bad in ["0", "501", "-1", "x", "1.5", ""] {
            let refused = api.get(&format!("{path}?limit={bad}")).await;
            assert_eq!(refused.problem(), (400, "REQUEST_INVALID"), "{path}?limit={bad}");
            assert!(refused.text("detail").contains("`limit`"), "{path}?limit={bad}: {}", refused.body);
        }
        lists += 1;
    }
    assert!(lists > 12, "{lists} lists");
    api.end().await;
}
