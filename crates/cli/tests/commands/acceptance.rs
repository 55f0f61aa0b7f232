//! The promises of the distributed worker path, one test for each: a runbook on a worker elsewhere in staging, people's
//! decisions live, rollback by itself, sandboxes by environment, credentials on record, what dashboards show, and the
//! flag back.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Up, eventually, now, pause};

const SECRET: &str = "s3cr3t-0123456789";
const PASSWORD: &str = "correct horse battery";

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server without a worker for commands, and one elsewhere that runs them for staging.
struct Staging {
    /// Ends before the server, whose folder it uses.
    _worker: Process,
    up: Up,
}

impl Staging {
    fn start() -> Self {
        let up = Up::start(&["--no-demo"]);
        let allow = [
            "/usr/bin/id {flags...}",
            "/usr/bin/uname {flags...}",
            "/usr/bin/cat {paths...}",
            "/usr/bin/touch {path}",
            "/usr/bin/sleep {s}",
        ];
        let commands = up.file("commands.toml", &format!("allow = {}\n", json!(allow)));
        let secrets = up.path("secrets");
        std::fs::create_dir_all(&secrets).unwrap();
        std::fs::write(secrets.join("DB"), SECRET).unwrap();
        known_commands(&up);
        let key = up.run(&["key", "create", "staging-worker", "--role", "worker"]).out;
        let key = up.file("worker.key", key.trim());
        let secrets = secrets.display().to_string();
        let server = up.server();
        let arguments = [
            "worker",
            "--server",
            &server,
            "--name",
            "staging-1",
            "--api-key-file",
            &key,
            "--commands",
            &commands,
            "--secrets",
            &secrets,
        ];
        let log = std::fs::File::create(up.path("worker.log")).unwrap();
        let child = up.command().args(arguments).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let staging = Self { _worker: Process(child), up };
        staging.until(|up| up.run(&["worker", "list"]).out.contains("staging-1"));
        staging
    }

    fn until(&self, is_so: impl Fn(&Up) -> bool) {
        let log = || std::fs::read_to_string(self.up.path("worker.log")).unwrap_or_default();
        assert!(eventually(|| is_so(&self.up)), "it does not come to that: {}", log());
    }

    fn apply(&self, text: &str) {
        let applied = self.up.run(&["workflow", "apply", &self.up.file("w.yaml", text)]);
        assert_eq!(applied.code, 0, "{applied:?}");
    }

    /// Starts a run; with `--wait` the command ends with it.
    fn start_run(&self, arguments: &[&str]) -> (i32, String) {
        let ended = self.up.run(&[&["run", "start"], arguments, &["-o", "json"]].concat());
        let run = ended.json()["run_id"].as_str().unwrap_or_else(|| panic!("{ended:?}")).to_owned();
        (ended.code, run)
    }

    fn get(&self, path: &str) -> Value {
        let (server, key) = (self.up.server(), self.up.key());
        let line = format!("curl -s {server}/api/v1{path} -H \"authorization: Bearer {}\"", key.trim());
        self.up.shell(&line).json()
    }

    fn steps(&self, run: &str) -> Vec<Value> {
        self.get(&format!("/runs/{run}/steps"))["steps"].as_array().unwrap().clone()
    }

    fn attempts(&self, run: &str) -> Vec<Value> {
        self.get(&format!("/runs/{run}/attempts"))["attempts"].as_array().unwrap().clone()
    }

    fn person(&self, name: &str) {
        let made = self.up.run(&["user", "create", name, "--role", "operator,approver", "--no-invite"]);
        assert_eq!(made.code, 0, "{made:?}");
        assert_eq!(self.up.run_fed(&["user", "set-password", name], PASSWORD).code, 0);
    }

    /// From here on commands are that person's.
    fn sign_in(&self, name: &str) {
        let server = self.up.server();
        let arguments = ["login", "--server", &server, "--context", name, "--user", name];
        let signed_in = self.up.run_fed(&arguments, &format!("{PASSWORD}\n"));
        assert_eq!(signed_in.code, 0, "{signed_in:?}");
    }

    /// The lines that a watcher of the run gets over its WebSocket, as they come.
    fn watch(&self, run: &str) -> (Process, Receiver<(Instant, String)>) {
        let arguments = ["events", run, "--follow", "--via", "ws", "-o", "json"];
        let mut child = self.up.command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (heard, hearing) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if heard.send((now(), line)).is_err() {
                    return;
                }
            }
        });
        (Process(child), hearing)
    }
}

/// The tenant's policy knows these commands, and where the credential may be used.
fn known_commands(up: &Up) {
    let policy = up.path("policy").display().to_string();
    assert_eq!(up.run(&["policy", "export", &policy]).code, 0);
    let data = up.path("policy/data.json");
    let mut known: Value = serde_json::from_str(&std::fs::read_to_string(&data).unwrap()).unwrap();
    for program in ["id", "uname", "cat", "touch", "sleep"] {
        known["config"]["commands"]["allow"][format!("/usr/bin/{program}")] =
            json!([{ "arguments": ["**"], "blast_radius": "low" }]);
    }
    known["config"]["credentials"] = json!({ "DB": { "environments": ["staging"] } });
    std::fs::write(&data, known.to_string()).unwrap();
    let pushed = up.run(&["policy", "push", &policy, "--activate", "--yes"]);
    assert_eq!(pushed.code, 0, "{pushed:?}");
}

fn heard(hearing: &Receiver<(Instant, String)>, event: &str) -> Instant {
    let until = now() + Duration::from_mins(1);
    let mut all = Vec::new();
    while let Ok((at, line)) = hearing.recv_timeout(until.saturating_duration_since(now())) {
        if line.contains(event) {
            return at;
        }
        all.push(line);
    }
    panic!("no {event}: {all:#?}");
}

#[test]
fn a_runbook_goes_from_start_to_end_on_a_worker_elsewhere_in_staging() {
    let staging = Staging::start();
    staging.apply(
        "name: runbook\nprofile: staging-standard\nsteps:\n\
         - { id: check, run: [/usr/bin/id, -u], effect: read, phase: prechecks }\n\
         - { id: act, run: [/usr/bin/uname, -s], effect: read }\n\
         - { id: look, run: [/usr/bin/uname, -r], effect: read, phase: postchecks }\n",
    );
    let (code, run) = staging.start_run(&["runbook", "--wait"]);
    let steps = staging.steps(&run);
    assert_eq!(code, 0, "{steps:#?}");
    assert_eq!(steps.len(), 3);
    for step in &steps {
        assert_eq!((&step["state"], &step["output"]["exit_code"]), (&json!("succeeded"), &json!(0)), "{step:#?}");
        assert_eq!(step["output"]["attestation"]["profile"], "staging-standard");
    }
    assert!(staging.attempts(&run).iter().all(|attempt| attempt["worker"] == "staging-1"));
    let logged = staging.up.run(&["run", "logs", &run]);
    assert!(logged.out.contains("Linux"), "what it wrote is kept: {logged:?}");
    let metrics = staging.get(&format!("/runs/{run}"))["metrics"].clone();
    assert_eq!((&metrics["steps"], &metrics["succeeded"], &metrics["retries"]), (&json!(3), &json!(3), &json!(0)));
}

#[test]
fn people_approve_and_reject_and_watchers_see_it_within_two_seconds() {
    let staging = Staging::start();
    staging.apply(
        "name: asks\nprofile: staging-standard\nsteps:\n\
         - { id: sure, approval: Go on? }\n\
         - { id: act, run: [/usr/bin/uname, -s], effect: read }\n",
    );
    // A person who is made after the question was asked would have to wait for a day.
    staging.person("ada");
    let runs = ["INC-1", "INC-2"].map(|subject| staging.start_run(&["asks", "--subject", subject]).1);
    let watching = runs.each_ref().map(|run| staging.watch(run));
    for (_, hearing) in &watching {
        heard(hearing, "approval.requested");
    }
    staging.sign_in("ada");
    let mut soonest = Duration::MAX;
    for (verb, (subject, (_, hearing))) in ["approve", "reject"].iter().zip(["INC-1", "INC-2"].iter().zip(&watching)) {
        let decided = staging.up.run(&["approval", verb, subject, "--yes", "--reason", "looked at it"]);
        let answered = now();
        assert_eq!(decided.code, 0, "{decided:?}");
        let seen = heard(hearing, "approval.resolved");
        soonest = soonest.min(seen.saturating_duration_since(answered));
    }
    // A busy machine may hold one of them up, and not both.
    assert!(soonest <= Duration::from_secs(2), "seen after {soonest:?} at the soonest");
    heard(&watching[0].1, "session.completed");
    let shown = staging.up.run(&["run", "show", &runs[1], "-o", "json"]).json();
    assert!(["paused", "failed"].contains(&shown["state"].as_str().unwrap()), "{shown}");
    assert_eq!(staging.steps(&runs[1])[1]["state"], "pending", "what was rejected has not run");
}

#[test]
fn a_step_that_fails_is_rolled_back_by_itself() {
    let staging = Staging::start();
    staging.apply(
        "name: change\nprofile: staging-standard\non_failure: rollback\nsteps:\n\
         - { id: first, run: [/usr/bin/uname, -s], rollback: { run: [/usr/bin/uname, -r] }, confidence_score: 0.99, \
             auto_approve_threshold: 0.9 }\n\
         - { id: fails, run: [/usr/bin/uname, --nonsense], confidence_score: 0.99, auto_approve_threshold: 0.9 }\n",
    );
    let (code, run) = staging.start_run(&["change", "--wait"]);
    let steps = staging.steps(&run);
    assert_ne!(code, 0);
    assert_eq!((&steps[0]["state"], &steps[1]["state"]), (&json!("rolled_back"), &json!("failed")), "{steps:#?}");
    assert_eq!((&steps[2]["kind"], &steps[2]["output"]["exit_code"]), (&json!("rollback"), &json!(0)), "{steps:#?}");
    let undone = staging.attempts(&run);
    assert!(undone.iter().any(|attempt| attempt["position"] == 2 && attempt["worker"] == "staging-1"), "{undone:#?}");
}

#[test]
fn a_sandbox_holds_what_its_environment_allows_and_nothing_else() {
    let staging = Staging::start();
    // The root is read-only, and others' files cannot be read.
    staging.apply(
        "name: out\nprofile: staging-standard\non_failure: fail\nsteps:\n\
         - { id: write, run: [/usr/bin/touch, /usr/bin/planted], effect: read }\n",
    );
    let (code, run) = staging.start_run(&["out", "--wait"]);
    let step = &staging.steps(&run)[0];
    assert_ne!(code, 0);
    assert_eq!(step["error"]["code"], "COMMAND_FAILED", "{step:#?}");
    assert!(!std::path::Path::new("/usr/bin/planted").exists());
    // A credential of staging is not for another environment, whatever the worker could do.
    staging.apply(
        "name: scope\nprofile: dev-flex\non_failure: fail\nsteps:\n\
         - { id: secret, run: [/usr/bin/cat, /run/secrets/DB], effect: read, credentials: [DB] }\n",
    );
    let (code, run) = staging.start_run(&["scope", "--wait"]);
    let shown = staging.up.run(&["run", "show", &run, "-o", "json"]).json();
    assert_ne!(code, 0);
    assert_eq!(shown["reason"], "policy_denied", "{shown:#}");
    // A command that no rule allows does not run anywhere.
    staging.apply(
        "name: unknown\nprofile: staging-standard\non_failure: fail\nsteps:\n\
         - { id: tty, run: [/usr/bin/tty], effect: read }\n",
    );
    let (_, run) = staging.start_run(&["unknown"]);
    staging.until(|up| !up.run(&["run", "show", &run, "-o", "json"]).out.contains("\"running\""));
    assert!(staging.attempts(&run).is_empty(), "{:#?}", staging.attempts(&run));
}

#[test]
fn a_credential_is_on_record_wherever_it_was_used_and_its_value_nowhere() {
    let staging = Staging::start();
    staging.apply(
        "name: secret\nprofile: staging-standard\nsteps:\n\
         - { id: read, run: [/usr/bin/cat, /run/secrets/DB], effect: read, credentials: [DB] }\n",
    );
    let (code, run) = staging.start_run(&["secret", "--wait"]);
    assert_eq!(code, 0, "{:#?}", staging.steps(&run));
    let used = staging.attempts(&run)[0]["credentials_used"].clone();
    assert_eq!(used.as_array().unwrap().len(), 1, "{used}");
    let id = used[0]["credential_id"].as_str().unwrap().to_owned();
    assert!(id.ends_with("/DB"), "{used}");
    assert!(used[0]["fetched_at"].as_i64().unwrap() > 0);
    staging.until(|up| up.run(&["audit", "list", "-o", "json"]).out.contains(&id));
    let everything = [
        staging.up.run(&["audit", "list", "-o", "json"]).out,
        staging.up.run(&["events", "-o", "json"]).out,
        staging.up.run(&["run", "logs", &run]).out,
        staging.get(&format!("/runs/{run}/steps")).to_string(),
        std::fs::read_to_string(staging.up.path("worker.log")).unwrap(),
    ];
    assert!(everything.iter().all(|text| !text.contains(SECRET)));
}

#[test]
fn what_a_dashboard_asks_for_is_what_a_server_tells() {
    let staging = Staging::start();
    staging
        .apply("name: seen\nprofile: staging-standard\nsteps: [{ id: a, run: [/usr/bin/uname, -s], effect: read }]\n");
    assert_eq!(staging.start_run(&["seen", "--wait"]).0, 0);
    let (server, key) = (staging.up.server(), staging.up.key());
    let line = format!("curl -s {server}/metrics -H \"authorization: Bearer {}\"", key.trim());
    let told = staging.up.shell(&line).out;
    let board = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/interlock.json");
    let board = std::fs::read_to_string(board).unwrap();
    for metric in ["interlock_run_transitions_total", "interlock_run_duration_seconds_count", "interlock_runs_active"] {
        assert!(told.contains(metric) && board.contains(metric), "{metric}");
    }
    let succeeded = |line: &str| line.starts_with("interlock_run_transitions_total") && line.contains("succeeded");
    assert!(told.lines().any(succeeded), "{told}");
}

#[test]
fn the_flag_is_switched_while_runs_are_in_flight_and_each_step_is_done_once() {
    let staging = Staging::start();
    staging.apply(
        "name: slow\nprofile: staging-standard\nsteps:\n\
         - { id: a, run: [/usr/bin/sleep, \"1\"], effect: read }\n\
         - { id: b, run: [/usr/bin/uname, -s], effect: read }\n",
    );
    let runs: Vec<String> = (0..6).map(|_| staging.start_run(&["slow"]).1).collect();
    for on in ["false", "true", "false", "true"] {
        let set = staging.up.run(&["flag", "set", "worker_orchestration.enabled", on]);
        assert_eq!(set.code, 0, "{set:?}");
        pause(Duration::from_millis(400));
    }
    for run in &runs {
        assert_eq!(staging.up.run(&["run", "watch", run, "--plain"]).code, 0);
        let attempts = staging.attempts(run);
        let completed = |step: &str| {
            let of = |attempt: &&Value| attempt["step"] == step && attempt["outcome"] == "completed";
            attempts.iter().filter(of).count()
        };
        assert_eq!((completed("a"), completed("b")), (1, 1), "{attempts:#?}");
    }
}
