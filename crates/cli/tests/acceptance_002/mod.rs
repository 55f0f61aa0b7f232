//! The acceptance criteria of the distributed worker path, a test for each, from end to end: a runbook on a worker elsewhere in
//! staging, people's decisions live, rollback by itself, sandboxes by environment, credentials on record, what dashboards
//! show, and the flag back.

mod approvals;
mod credentials;
mod dashboards;
mod distributed;
mod flag;
mod rollback;
mod sandbox;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Up, eventually, now};

const SECRET: &str = "s3cr3t-0123456789";
const PASSWORD: &str = "correct horse battery";

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The label of the worker elsewhere, by which a step can ask for it.
const FAR: &str = "place=far";

/// A server without a worker for commands, unless it is told to have one, and a worker elsewhere that runs them for staging.
struct Staging {
    /// Ends before the server, whose folder it uses.
    worker: Process,
    up: Up,
}

impl Staging {
    fn start() -> Self {
        Self::with_secrets(secrets_in_files)
    }

    /// The server has these flags besides.
    fn start_with(flags: &[&str]) -> Self {
        Self::beside(Up::start(&[&["--no-demo"], flags].concat()), secrets_in_files)
    }

    /// With a worker that has its secrets from elsewhere: the flag that says where.
    fn with_secrets(secrets: impl FnOnce(&Up) -> [String; 2]) -> Self {
        Self::beside(Up::start(&["--no-demo"]), secrets)
    }

    /// The server's own worker runs the same commands.
    fn with_commands_inside() -> Self {
        let folder = Up::new_folder();
        let commands = folder.join("inside.toml");
        std::fs::write(&commands, allowed_commands()).unwrap();
        let up = Up::start_in(folder, &["--no-demo", "--commands", &commands.display().to_string()]);
        Self::beside(up, secrets_in_files)
    }

    /// The worker elsewhere, beside a server.
    fn beside(up: Up, secrets: impl FnOnce(&Up) -> [String; 2]) -> Self {
        let commands = up.file("commands.toml", &allowed_commands());
        let [flag, place] = secrets(&up);
        known_commands(&up);
        let key = up.run(&["key", "create", "staging-worker", "--role", "worker"]).out;
        let key = up.secret_file("worker.key", key.trim());
        let server = up.server();
        let arguments = [
            "worker",
            "--server",
            &server,
            "--name",
            "staging-1",
            "--label",
            FAR,
            "--api-key-file",
            &key,
            "--commands",
            &commands,
            &flag,
            &place,
        ];
        let log = std::fs::File::create(up.path("worker.log")).unwrap();
        let child = up.command().args(arguments).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let staging = Self { worker: Process(child), up };
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

/// The file of a worker that runs these commands.
fn allowed_commands() -> String {
    let allow = [
        "/usr/bin/id {flags...}",
        "/usr/bin/uname {flags...}",
        "/usr/bin/cat {paths...}",
        "/usr/bin/touch {path}",
        "/usr/bin/sleep {s}",
    ];
    format!("allow = {}\n", json!(allow))
}

fn secrets_in_files(up: &Up) -> [String; 2] {
    let secrets = up.path("secrets");
    std::fs::create_dir_all(&secrets).unwrap();
    std::fs::write(secrets.join("DB"), SECRET).unwrap();
    ["--secrets".to_owned(), secrets.display().to_string()]
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
