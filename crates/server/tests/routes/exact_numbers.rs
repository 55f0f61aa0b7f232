//! A whole number that no value holds exactly: refused with its place wherever it would be rounded, and kept where the text
//! is all that counts.

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use serde_json::json;

use crate::harness::{Api, ApiResponse, attempt, plan, task};
use crate::schedules::apply;
use crate::webhooks::{SECRET, endpoint, hex, hmac, send};

/// In the requests below it stands as `LONG`.
const LONG: &str = "123456789012345678901234567890";
const ANY: &str = "name: any\non:\n  signal: { type: go }\n  webhook: { source: generic }\ninputs: { n: { type: integer } }\nsteps:\n  - id: a\n    transform: seen\n";
const JSON: (&str, &str) = ("content-type", "application/json");

async fn ask(api: &Api, path: &str, headers: &[(&str, &str)], body: &str) -> ApiResponse {
    let mut request = Request::post(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.ask(request.body(Body::from(body.replace("LONG", LONG))).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_number_that_would_be_rounded_is_refused_at_every_door() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, ANY).await;
    let run = api.start(json!([task("a")])).await;
    let with_plan = format!(r#"{{"plan":{},"inputs":{{"n":[1,LONG]}}}}"#, plan(json!([task("a")])));
    let to_run = |what: &str| format!("/runs/{run}/{what}");
    let of_runs = [
        ("/runs".to_owned(), with_plan.as_str(), "`n[1]`"),
        ("/runs".to_owned(), r#"{"workflow":"any","inputs":{"n":LONG}}"#, "`n`"),
        ("/signals".to_owned(), r#"{"type":"go","key":"k","payload":{"n":LONG}}"#, "`n`"),
        (to_run("signals"), r#"{"type":"go","payload":LONG}"#, "the payload"),
        (to_run("retry"), r#"{"input":{"n":LONG}}"#, "`n`"),
        (to_run("steps/a/resolve"), r#"{"outcome":"happened","output":{"n":LONG},"reason":"seen"}"#, "`n`"),
        ("/schedules".to_owned(), r#"{"name":"s","workflow":"any","cron":"0 3 * * *","inputs":{"n":LONG}}"#, "`n`"),
        ("/policy/eval".to_owned(), r#"{"input":{"n":LONG}}"#, "`n`"),
    ];
    for (path, body, place) in of_runs {
        let refused = ask(&api, &path, &[JSON], body).await;
        assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{path} {body}");
        let detail = refused.text("detail");
        assert!(detail.contains(place) && detail.contains(LONG), "{path}: {detail}");
    }
    for field in ["ticket", "inputs"] {
        let body = format!(r#"{{"ticket_id":"INC-1","runbook_id":"any","{field}":{{"a":{{"n":LONG}}}}}}"#);
        let refused = ask(&api, "/executions", &[JSON], &body).await;
        assert_eq!(refused.problem(), (400, "REQUEST_INVALID"), "{field}");
        let detail = refused.text("detail");
        assert!(detail.contains(&format!("`{field}`: `a.n`: {LONG}")), "{detail}");
    }
    assert_eq!(api.get("/runs").await.ok()["runs"].as_array().unwrap().len(), 1, "nothing was started");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_would_be_rounded_starts_nothing_in_either_mode() {
    let api = Api::new().await;
    apply(&api.engine, api.tenant, ANY).await;
    let structured = [("content-type", "application/cloudevents+json")];
    let binary =
        [JSON, ("ce-specversion", "1.0"), ("ce-id", "2"), ("ce-source", "/m"), ("ce-type", "go"), ("ce-subject", "k")];
    let event = r#"{"specversion":"1.0","id":"1","source":"/m","type":"go","subject":"k","data":{"n":LONG}}"#;
    let sent: [(&[(&str, &str)], &str); 2] = [(&structured, event), (&binary, r#"{"n":LONG}"#)];
    for (headers, body) in sent {
        let refused = ask(&api, "/signals", headers, body).await;
        assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{body}");
        assert!(refused.text("detail").contains(&format!("`n`: {LONG}")), "{}", refused.body);
        let taken = ask(&api, "/signals", headers, &body.replace("LONG", "9007199254740993")).await;
        let run = taken.body["runs"][0]["run_id"].as_str().unwrap_or_else(|| panic!("{}", taken.body));
        assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["inputs"]["n"], 9_007_199_254_740_993_i64);
    }

    let path = endpoint(&api, "generic").await;
    let body = format!(r#"{{"n":{LONG}}}"#);
    let signature = hex(&hmac(SECRET.as_bytes(), body.as_bytes()));
    let refused = send(&api, &path, &body, &[("x-signature-256", &*signature)]).await;
    assert_eq!(refused.problem(), (400, "WEBHOOK_INVALID"));
    assert!(refused.text("detail").contains(&format!("`n`: {LONG}")), "{}", refused.body);
    assert_eq!(api.get("/webhooks/generic-main/deliveries").await.ok()["deliveries"], json!([]));
    api.end().await;
}

/// What a worker has done is not to be refused for what it says of it: its output is the text that it sent.
#[tokio::test(start_paused = true)]
async fn an_output_keeps_its_numbers_and_a_message_that_would_change_them_is_refused() {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let at = attempt(&api.poll(&session).await).to_string();
    let report = |outcome: &str| format!(r#"{},"outcome":{outcome}}}"#, at.strip_suffix('}').unwrap());
    let path = format!("/agent/{session}/complete-step");
    let message = format!(r#"{{"destination":"signal:{run}/go","payload":{{"n":LONG}}}}"#);
    let asks = report(&format!(r#"{{"status":"waiting","signal":"go","outbound":[{message}]}}"#));
    let refused = ask(&api, &path, &[JSON], &asks).await;
    assert_eq!(refused.problem(), (422, "INPUT_INVALID"));
    assert!(refused.text("detail").contains(&format!("`n`: {LONG}")), "{}", refused.body);

    ask(&api, &path, &[JSON], &report(r#"{"status":"completed","output":{"n":LONG}}"#)).await.ok();
    let request = Request::get(format!("/api/v1/runs/{run}?wait_ms=5000"))
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    let response = api.raw(request.body(Body::empty()).unwrap()).await;
    let shown = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let shown = String::from_utf8(shown.to_vec()).unwrap();
    assert!(shown.contains(&format!(r#"{{"n":{LONG}}}"#)) && shown.contains(r#""succeeded""#), "{shown}");
    api.end().await;
}
