//! Dashboards show assignments, run states, approval latency and the objectives of commands.

use super::Staging;

#[test]
fn what_a_dashboard_asks_for_is_what_a_server_tells() {
    let staging = Staging::start();
    staging.apply(
        "name: seen\nprofile: staging-standard\nsteps:\n\
         - { id: sure, approval: Go on? }\n\
         - { id: a, run: [/usr/bin/uname, -s], effect: read }\n",
    );
    // One that a worker has as a whole.
    let text =
        "name: whole\nprofile: dev-flex\nsteps: [{ id: a, run: [/usr/bin/uname, -s], effect: read, workdir: run }]\n";
    staging.apply(text);
    let (code, whole) = staging.start_run(&["whole", "--wait"]);
    assert_eq!(code, 0, "{:#?}", staging.steps(&whole));
    staging.person("ada");
    let (_, run) = staging.start_run(&["seen", "--subject", "INC-1"]);
    let (server, key) = (staging.up.server(), staging.up.key());
    staging.sign_in("ada");
    let approved = staging.up.run(&["approval", "approve", "INC-1", "--yes", "--reason", "looked at it"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    staging.until(|_| staging.get(&format!("/runs/{run}"))["state"] == "succeeded");
    let line = format!("curl -s {server}/metrics -H \"authorization: Bearer {}\"", key.trim());
    let told = staging.up.shell(&line).out;
    let board = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/workers.json");
    let board = std::fs::read_to_string(board).unwrap();
    for (subject, metric, labels) in [
        ("Assignments", "interlock_worker_assignments_total", r#"{worker_id="staging-1",status="acked"} 1"#),
        ("Run states", "interlock_run_duration_seconds_count", r#"{type="seen",status="succeeded"} 1"#),
        ("Approval latency", "interlock_approval_wait_duration_seconds_count", r#"{environment="staging"} 1"#),
        (
            "Command SLOs",
            "interlock_execution_attempts_total",
            r#"{environment="staging",connector="command",result="succeeded"} 1"#,
        ),
    ] {
        assert!(board.contains(&format!("\"{subject}\"")) && board.contains(metric), "{subject}: {metric}");
        let sample = format!("{metric}{labels}");
        assert!(told.lines().any(|line| line == sample), "{sample} is not in\n{told}");
    }
}
