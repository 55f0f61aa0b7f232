//! Workers that run commands in sandboxes, killed at random: every step is accounted for, and no command has run twice without
//! a recorded reason.
//!
//! `INTERLOCK_WORKERS` and `INTERLOCK_COMMANDS` say how many (4 and 60 by default; `make soak` uses 50 and 2,000),
//! `INTERLOCK_KILL_SEED` repeats a sequence of kills.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::database::Database;
use crate::fleet::{Blow, INTERLOCK, Member, Setup};
use crate::{FolderGuard, db_check, folder, free_port, number};

/// No worker may lose its lease because the machine is busy: its command would go on beside the next attempt.
const LEASE_MS: u64 = 6_000;
/// Between two kills.
const PAUSE_MS: std::ops::Range<u64> = 500..2_000;
/// How long a command waits for its answer: workers are killed meanwhile.
const ANSWERED_AFTER: Duration = Duration::from_millis(700);
/// Workers that start at a time. Each proves its sandbox first, which takes the machine a second.
const STARTED_AT_ONCE: usize = 4;
/// Runs that are looked at between two kills.
const LOOKED_AT: usize = 100;
/// The longest without a run that ends. A doubt takes a lease and half a minute until its effect has settled.
const STUCK_AFTER: Duration = Duration::from_mins(4);
const COMMANDS_PER_RUN: u64 = 2;
/// What a command is that may be repeated, and what one is that may not.
const STEPS: [(&str, &str); COMMANDS_PER_RUN as usize] = [("again", "idempotent"), ("once", "unsafe")];

/// What commands call: a system outside that counts each call by its path before it answers.
#[derive(Clone, Default)]
struct CalledSystem(Arc<Mutex<HashMap<String, u32>>>);

impl CalledSystem {
    async fn start() -> (Self, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let called = Self::default();
        let answering = called.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answering.clone().answer(stream));
            }
        });
        (called, port)
    }

    /// A caller that dies before its request is whole has not called.
    async fn answer(self, mut stream: TcpStream) {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if !matches!(stream.read_buf(&mut head).await, Ok(1..)) {
                return;
            }
        }
        self.count(&String::from_utf8_lossy(&head));
        sleep(ANSWERED_AFTER).await;
        // The caller may be dead by now.
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").await;
    }

    fn count(&self, head: &str) {
        let path = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
        *self.0.lock().unwrap().entry(path.to_owned()).or_default() += 1;
    }

    /// How often the command of a run's step has called.
    fn calls(&self, run: usize, step: &str) -> u32 {
        self.0.lock().unwrap().get(&path_of(run, step)).copied().unwrap_or_default()
    }

    /// The paths that were called.
    fn paths(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn path_of(run: usize, step: &str) -> String {
    format!("{}/{step}", mark_of(run))
}

/// What a run is given, so that its commands can be told apart.
fn mark_of(run: usize) -> String {
    format!("m-{run}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_runs_twice_without_a_reason() {
    let database = Database::create("commands").await;
    let setup = Setup { folder: folder("commands"), store: database.url.clone(), ledger_port: 0, lease_ms: LEASE_MS };
    let _folder = FolderGuard(setup.folder.clone());
    let (called, called_port) = CalledSystem::start().await;
    let ports = [free_port(), free_port()];
    let first = server(&setup, ports[0]);
    let client = Client::new(vec![ports[0]], &setup.folder).await;
    client.answers().await;
    let second = server(&setup, ports[1]);
    client.through(ports[1]).answers().await;
    let client = client.over(&ports);
    let_commands_pass(&setup.folder, ports[0]);
    apply(&setup, ports[0], called_port);

    let count = number("INTERLOCK_WORKERS", 4) as usize;
    let mut workers = start_workers(&setup, &ports, count).await;
    let seed = number("INTERLOCK_KILL_SEED", u64::from(std::process::id()));
    println!("INTERLOCK_KILL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let runs = start_runs(&client, number("INTERLOCK_COMMANDS", 60) / COMMANDS_PER_RUN).await;

    // As long as there is work, workers are killed; the last runs end undisturbed.
    let (mut open, mut kills): (VecDeque<usize>, u32) = ((0..runs.len()).collect(), 0);
    let mut ended_at = Instant::now();
    while !open.is_empty() {
        sleep(Duration::from_millis(random.u64(PAUSE_MS))).await;
        if open.len() * 4 > runs.len() {
            let whom = random.usize(..workers.len());
            workers[whom].suffer(Blow::Kill, Duration::ZERO, Duration::ZERO).await;
            kills += 1;
        }
        workers.iter_mut().filter_map(|worker| worker.gave_up().then_some(worker)).for_each(Member::restart);
        for _ in 0..open.len().min(LOOKED_AT) {
            let Some(run) = open.pop_front() else { break };
            if has_ended(&client, &called, run, &runs[run]).await {
                ended_at = Instant::now();
            } else {
                open.push_back(run);
            }
        }
        if ended_at.elapsed() > STUCK_AFTER {
            let run = &runs[open[0]];
            let why = client.with_retries(Method::GET, &format!("/runs/{run}/why"), None, None).await.1;
            panic!("{} runs are stuck, such as {run}: {why}", open.len());
        }
    }
    judge(&client, &called, &runs).await;
    println!("{} commands of {} runs on {count} workers, {kills} kills", runs.len() * STEPS.len(), runs.len());
    assert!(kills > 0, "no worker was killed");
    drop((workers, first, second));
    db_check(&setup.folder, &setup.store);
}

/// All workers and the test ask with one key, so its requests are not counted.
fn server(setup: &Setup, port: u16) -> Member {
    let (folder, store) = (setup.folder.clone(), setup.store.clone());
    Member::start(format!("server {port}"), move || {
        let mut command = Setup::interlock(Path::new(INTERLOCK), &folder);
        command.args(["server", "--store", &store, "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--session-lease-ms", &LEASE_MS.to_string(), "--requests-per-min", "0"]);
        command
    })
}

/// Some at a time, until all have registered: a sandbox is not proven well on a machine that starts fifty.
async fn start_workers(setup: &Setup, ports: &[u16; 2], count: usize) -> Vec<Member> {
    let rules = setup.folder.join("commands.toml");
    std::fs::write(&rules, "profiles = [\"dev-flex\"]\n").unwrap();
    let mut workers = Vec::new();
    let begun_at = Instant::now();
    while workers.len() < count {
        for _ in 0..STARTED_AT_ONCE.min(count - workers.len()) {
            let number = workers.len();
            workers.push(setup.commanded_worker(number, ports[number % 2], &rules));
        }
        while connected(&setup.folder) < workers.len() {
            assert!(begun_at.elapsed() < Duration::from_mins(10), "workers do not come up: {}", setup.folder.display());
            sleep(Duration::from_millis(100)).await;
        }
    }
    workers
}

/// How often a worker has said that it is connected.
fn connected(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("fleet.log")).unwrap_or_default().matches("interlock: connected to").count()
}

async fn start_runs(client: &Client, count: u64) -> Vec<String> {
    let mut runs = Vec::new();
    for number in 0..count as usize {
        let body = json!({ "workflow": "called", "inputs": { "mark": mark_of(number) } });
        let key = format!("run-{number}");
        let (status, answer) = client.with_retries(Method::POST, "/runs", Some(&body), Some(&key)).await;
        assert!(status == 200 || status == 201, "{status}: {answer}");
        runs.push(answer["run_id"].as_str().unwrap().to_owned());
    }
    runs
}

fn interlock(folder: &Path, port: u16, arguments: &[&str]) {
    let ended = std::process::Command::new(INTERLOCK)
        .current_dir(folder)
        .args(arguments)
        .args(["--server", &format!("http://127.0.0.1:{port}"), "--api-key-file", "interlock-data/local.key"])
        .output()
        .unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// The policy allows the command, so that no approval is needed. A shell would need two in any case.
fn let_commands_pass(folder: &Path, port: u16) {
    interlock(folder, port, &["policy", "export", "policy"]);
    let data = folder.join("policy/data.json");
    let mut known: Value = serde_json::from_str(&std::fs::read_to_string(&data).unwrap()).unwrap();
    known["config"]["commands"]["allow"]["/usr/bin/curl"] = json!([{ "arguments": ["**"], "blast_radius": "low" }]);
    std::fs::write(&data, known.to_string()).unwrap();
    interlock(folder, port, &["policy", "push", "policy", "--activate", "--yes"]);
}

/// Each command calls the system outside, and waits for its answer.
fn apply(setup: &Setup, port: u16, called_port: u16) {
    let steps = STEPS.map(|(id, effect)| {
        let url = format!("http://127.0.0.1:{called_port}/${{{{ inputs.mark }}}}/{id}");
        json!({
            "id": id, "run": ["/usr/bin/curl", "-sf", url], "effect": effect,
            "retry": { "max_attempts": 100, "backoff": "20ms" },
            "confidence_score": 0.99, "auto_approve_threshold": 0.9,
        })
    });
    let inputs = json!({ "mark": { "type": "string" } });
    let text = json!({ "name": "called", "profile": "dev-flex", "inputs": inputs, "steps": steps }).to_string();
    std::fs::write(setup.folder.join("called.yaml"), text).unwrap();
    interlock(&setup.folder, port, &["workflow", "apply", "called.yaml"]);
}

/// Whether the run is over. Of what is in doubt, a person asks the system that was called.
async fn has_ended(client: &Client, called: &CalledSystem, number: usize, id: &str) -> bool {
    let run = client.run(id).await;
    match run["state"].as_str().unwrap() {
        "succeeded" => true,
        "failed" | "canceled" | "waiting_approval" => panic!("{id} does not go on as it should: {run}"),
        "paused" => {
            for step in client.steps(id).await.iter().filter(|step| step["state"] == "in_doubt") {
                let key = step["key"].as_str().unwrap();
                let outcome = if called.calls(number, key) > 0 { "happened" } else { "did_not_happen" };
                // That it did not happen is refused until it cannot happen any more; the next look says it again.
                client.resolve(id, key, outcome).await;
            }
            false
        }
        _ => false,
    }
}

/// What was called against the runs: each command has called; what must not be repeated once, the others once more for each
/// attempt of which it is recorded that it did not end well.
async fn judge(client: &Client, called: &CalledSystem, runs: &[String]) {
    for (number, id) in runs.iter().enumerate() {
        let attempts = client.with_retries(Method::GET, &format!("/runs/{id}/attempts"), None, None).await.1;
        let attempts = attempts["attempts"].as_array().unwrap_or_else(|| panic!("{id}: {attempts}"));
        for (step, _) in STEPS {
            let of_step = attempts.iter().filter(|attempt| attempt["step"] == step);
            let reasons = of_step.filter(|attempt| attempt["outcome"] != "completed").count();
            let most = if step == "once" { 1 } else { 1 + reasons };
            let calls = called.calls(number, step) as usize;
            assert!((1..=most).contains(&calls), "{id} {step}: {calls} calls, {reasons} reasons: {attempts:#?}");
        }
    }
    assert_eq!(called.paths(), runs.len() * STEPS.len(), "commands that belong to no run");
}
