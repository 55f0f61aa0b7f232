//! `/metrics`, read by those who read it for a living: Prometheus' own linter and the official client's parser.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use interlock_store::NoFaults;
use serde_json::json;

use crate::approvals::Person;
use crate::harness::{Api, attempt, completed, engine_of, task, two_tenants};
use crate::set_up::until;

/// The numbers of a server on which something has happened, in the format that is asked for.
async fn numbers(accept: &str) -> (String, String) {
    let api = Api::new().await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, completed(json!(1))).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    let shown = shown_to(&api.in_charge().await, accept).await;
    api.end().await;
    shown
}

pub async fn shown_to(api: &Api, accept: &str) -> (String, String) {
    let request = Request::get("/metrics")
        .header(header::HOST, "localhost")
        .header(header::ACCEPT, accept)
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key));
    let response = api.raw(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 200);
    let format = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (format, String::from_utf8(bytes.to_vec()).unwrap())
}

/// Sums over all tenants tell one tenant of the others.
#[tokio::test(start_paused = true)]
async fn a_tenants_key_does_not_see_the_sums_of_all() {
    let api = Api::new().await;
    api.start(json!([task("a")])).await;
    let (_, own) = shown_to(&api.with_key(&api.other_key), "text/plain").await;
    assert!(own.contains("interlock_http_requests_total{") && !own.contains("interlock_run"), "{own}");
    let (_, all) = shown_to(&api.in_charge().await, "text/plain").await;
    assert!(all.contains("interlock_runs_active{status=\"pending\"} 1"), "{all}");
    api.end().await;
}

/// A server that tells tenants apart, on which each of two has a run that has ended and one that has not.
async fn of_two_tenants(database: &str) -> Api {
    let engine = engine_of(database, Arc::new(NoFaults), |options| options.metrics_by_tenant = true).await;
    let tenants = two_tenants(&engine).await;
    let api = Api::of(engine, tenants, database.to_owned()).await;
    for key in [&api.key, &api.other_key] {
        let own = api.with_key(key);
        let run = own.start(json!([task("a")])).await;
        own.post(&format!("/runs/{run}/cancel"), json!({ "reason": "why" })).await.ok();
        own.start(json!([task("a")])).await;
    }
    api
}

#[tokio::test(start_paused = true)]
async fn the_numbers_of_runs_name_the_tenant_where_the_operator_asks_for_it() {
    let api = of_two_tenants("numbers-by-tenant").await;
    let (_, all) = shown_to(&api.in_charge().await, "text/plain").await;
    for tenant in [api.tenant, api.other_tenant] {
        for line in [
            format!(
                r#"interlock_run_transitions_total{{from_state="none",to_state="pending",tenant_id="{tenant}"}} 2"#
            ),
            format!(
                r#"interlock_run_transitions_total{{from_state="pending",to_state="canceled",tenant_id="{tenant}"}} 1"#
            ),
            format!(r#"interlock_run_duration_seconds_count{{type="demo",status="canceled",tenant_id="{tenant}"}} 1"#),
            format!(r#"interlock_run_duration_seconds_count{{type="demo",status="failed",tenant_id="{tenant}"}} 0"#),
            format!(r#"interlock_runs_active{{status="pending",tenant_id="{tenant}"}} 1"#),
        ] {
            assert!(all.lines().any(|told| told == line), "{line} is not in\n{all}");
        }
    }
    assert!(!all.contains("interlock_runs_active{status=\"pending\"}"), "a run is counted once: {all}");
    let (_, own) = shown_to(&api.with_key(&api.other_key), "text/plain").await;
    assert!(!own.contains("tenant_id"), "a tenant's key is not told of tenants: {own}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn promtool_finds_nothing_to_say_about_tenants() {
    let api = of_two_tenants("numbers-by-tenant-checked").await;
    let (_, text) = shown_to(&api.in_charge().await, "text/plain").await;
    let (clean, said) = fed(Command::new(tools().join("promtool")).args(["check", "metrics"]), &text);
    assert!(clean && said.is_empty(), "{said}\n{text}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn steps_waits_for_people_secrets_and_sockets_are_measured() {
    let api = Api::new().await;
    let run = api.start(json!([{ "key": "gate", "kind": "approval", "message": "go?" }, task("a")])).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    ada.post(&format!("/runs/{run}/approve"), json!({ "approve": true })).await.ok();
    let session = api.register().await;
    let assignment = api.poll(&session).await;
    let mut report = attempt(&assignment);
    report["outcome"] = completed(json!(1));
    report["credentials"] = json!([
        { "credential_id": "corp/DB", "fetched_at": 5, "fetch_ms": 70 },
        { "credential_id": "corp/OTHER", "fetched_at": 5 },
    ]);
    api.post(&format!("/agent/{session}/complete-step"), report).await.ok();
    let (_, shown) = shown_to(&api.in_charge().await, "text/plain").await;
    for line in [
        r#"interlock_execution_step_duration_seconds_count{environment="none",connector="task"} 1"#,
        r#"interlock_execution_attempts_total{environment="none",connector="task",result="succeeded"} 1"#,
        r#"interlock_traces_dropped_total{of="span"} 0"#,
        r#"interlock_approval_wait_duration_seconds_count{environment="none"} 1"#,
        r#"interlock_credential_fetch_duration_seconds_sum{vault_cluster="corp"} 0.07"#,
        r#"interlock_credential_fetch_duration_seconds_count{vault_cluster="corp"} 1"#,
        r#"interlock_websocket_active_sessions{of="watcher"} 0"#,
    ] {
        assert!(shown.lines().any(|told| told == line), "{line} is not in\n{shown}");
    }
    api.end().await;
}

/// A command that is refused for what it is, is counted under its profile.
#[tokio::test(start_paused = true)]
async fn refused_commands_are_counted() {
    let api = Api::new().await;
    let source = "name: w\nprofile: staging-standard\nsteps:\n  - { id: a, run: [/sbin/reboot] }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    until(&api, &run, "failed").await;
    let (_, shown) = shown_to(&api.in_charge().await, "text/plain").await;
    let line = r#"interlock_sandbox_policy_violations_total{policy_id="staging-standard"} 1"#;
    assert!(shown.lines().any(|told| told == line), "{shown}");
    api.end().await;
}

/// What Prometheus sends when it can read both.
const BOTH: &str = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";

#[tokio::test(start_paused = true)]
async fn the_format_is_the_one_that_is_asked_for() {
    for (accept, format) in [
        (BOTH, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text;q=0", "text/plain; version=0.0.4; charset=utf-8"),
    ] {
        assert_eq!(numbers(accept).await.0, format, "{accept}");
    }
    let (_, open) = numbers(BOTH).await;
    assert!(open.ends_with("# EOF\n"));
    let (_, plain) = numbers("text/plain").await;
    assert!(!plain.contains("# EOF") && !plain.contains("# UNIT"), "{plain}");
    assert!(plain.contains("# TYPE interlock_http_requests_total counter\n"), "{plain}");
    for text in [&open, &plain] {
        let infinite = "interlock_run_duration_seconds_bucket{le=\"+Inf\",type=\"demo\",status=\"succeeded\"} 1";
        assert!(text.lines().any(|line| line == infinite), "{infinite} is not in\n{text}");
    }
}

/// Where the programs are; `scripts/need prometheus` puts them there.
fn tools() -> PathBuf {
    let folder = std::env::var_os("INTERLOCK_TEST_PROMETHEUS").expect(
        "INTERLOCK_TEST_PROMETHEUS is not set: run `make test`, or scripts/need prometheus and name its folder",
    );
    folder.into()
}

fn fed(command: &mut Command, text: &str) -> (bool, String) {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[tokio::test(start_paused = true)]
async fn promtool_finds_nothing_to_say() {
    let (_, text) = numbers("text/plain").await;
    let (clean, said) = fed(Command::new(tools().join("promtool")).args(["check", "metrics"]), &text);
    assert!(clean && said.is_empty(), "{said}\n{text}");
}

#[tokio::test(start_paused = true)]
async fn the_official_parser_reads_both_formats() {
    for (accept, parser) in [("text/plain", "parser"), (BOTH, "openmetrics.parser")] {
        let (_, text) = numbers(accept).await;
        let script = format!(
            "import sys\n\
             from prometheus_client.{parser} import text_string_to_metric_families as read\n\
             families = list(read(sys.stdin.read()))\n\
             names = {{family.name for family in families}}\n\
             assert any(name.startswith('interlock_run_duration_seconds') for name in names), names\n\
             bounds = {{s.labels['le'] for f in families for s in f.samples if s.name.endswith('_bucket')}}\n\
             assert '+Inf' in bounds, bounds\n"
        );
        let (read, said) = fed(Command::new(tools().join("bin/python")).args(["-c", &script]), &text);
        assert!(read, "{parser}: {said}\n{text}");
    }
}
