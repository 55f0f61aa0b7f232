//! Workers that run commands in sandboxes, killed at random: every step is accounted for, and no command has run twice without
//! a recorded reason.
//!
//! `INTERLOCK_WORKERS` and `INTERLOCK_COMMANDS` say how many (4 and 40 by default; `make soak` uses 50 and 2,000).

use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::database::Database;
use crate::fleet::{Blow, INTERLOCK, Member, Setup};
use crate::ledger::Ledger;
use crate::{LEASE_MS, db_check, folder, free_port, number};

/// Between two blows.
const PAUSE_MS: std::ops::Range<u64> = 4_000..8_000;
const COMMANDS_PER_RUN: u64 = 2;
/// What a command is that may be repeated, and what one is that may not.
const STEPS: [(&str, &str); COMMANDS_PER_RUN as usize] = [("again", "idempotent"), ("once", "unsafe")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "for `make soak`: workers prove their sandboxes for seconds before they take anything"]
async fn no_command_runs_twice_without_a_reason() {
    let database = Database::create("commands").await;
    let mut setup =
        Setup { folder: folder("commands"), store: database.url.clone(), ledger_port: 0, lease_ms: LEASE_MS };
    let ledger = Ledger::start(&setup.folder).await;
    setup.ledger_port = ledger.port;
    let ports = [free_port(), free_port()];
    let _servers = ports.map(|port| setup.server(port));
    let client = Client::new(vec![ports[0]], &setup.folder).await.over(&ports);
    client.through(ports[1]).answers().await;
    let_commands_pass(&setup.folder, ports[0]);
    apply(&setup, ports[0]);

    let count = number("INTERLOCK_WORKERS", 4) as usize;
    let rules = setup.folder.join("commands.toml");
    std::fs::write(&rules, "allow_inline = [\"/usr/bin/bash -c {code}\"]\nprofiles = [\"dev-flex\"]\n").unwrap();
    let mut workers: Vec<Member> =
        (0..count).map(|number| setup.commanded_worker(number, ports[number % 2], &rules)).collect();

    let seed = number("INTERLOCK_KILL_SEED", u64::from(std::process::id()));
    println!("INTERLOCK_KILL_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut runs = Vec::new();
    for number in 0..number("INTERLOCK_COMMANDS", 40) / COMMANDS_PER_RUN {
        let body = json!({ "workflow": "ledger-commands", "inputs": {} });
        let (status, answer) =
            client.with_retries(Method::POST, "/runs", Some(&body), Some(&format!("run-{number}"))).await;
        assert!(status == 200 || status == 201, "{status}: {answer}");
        runs.push(answer["run_id"].as_str().unwrap().to_owned());
    }
    // As long as there is work, workers are killed.
    let (mut open, mut kills) = (runs.clone(), 0);
    while !open.is_empty() {
        tokio::time::sleep(Duration::from_millis(random.u64(PAUSE_MS))).await;
        // The last ones end undisturbed.
        if open.len() * 4 > runs.len() {
            let whom = random.usize(..workers.len());
            workers[whom].suffer(Blow::Kill, Duration::ZERO, Duration::ZERO).await;
            kills += 1;
        }
        for run in std::mem::take(&mut open) {
            if !has_ended(&client, &ledger, &run).await {
                open.push(run);
            }
        }
    }
    judge(&client, &ledger, &runs).await;
    println!("{} commands of {} runs on {count} workers, {kills} kills", runs.len() * STEPS.len(), runs.len());
    assert!(kills > 0, "no worker was killed");
    drop(workers);
    db_check(&setup.folder, &setup.store);
    let _ = std::fs::remove_dir_all(&setup.folder);
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

/// The policy allows the shell, so that no approval is needed.
fn let_commands_pass(folder: &Path, port: u16) {
    interlock(folder, port, &["policy", "export", "policy"]);
    let data = folder.join("policy/data.json");
    let mut known: Value = serde_json::from_str(&std::fs::read_to_string(&data).unwrap()).unwrap();
    known["config"]["commands"]["allow"]["/usr/bin/bash"] = json!([{ "arguments": ["**"], "blast_radius": "low" }]);
    std::fs::write(&data, known.to_string()).unwrap();
    interlock(folder, port, &["policy", "push", "policy", "--activate", "--yes"]);
}

/// Each command tells the ledger its key, and waits for the ledger's word.
fn apply(setup: &Setup, port: u16) {
    let code = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf '%s\\n' \"$INTERLOCK_EFFECT_KEY\" >&3; read -r word <&3; [ \"$word\" = ok ]",
        setup.ledger_port
    );
    let steps = STEPS.map(|(id, effect)| {
        json!({
            "id": id, "run": ["/usr/bin/bash", "-c", code], "effect": effect,
            "retry": { "max_attempts": 100, "backoff": "20ms" },
            "confidence_score": 0.99, "auto_approve_threshold": 0.9,
        })
    });
    let text = json!({ "name": "ledger-commands", "profile": "dev-flex", "steps": steps }).to_string();
    std::fs::write(setup.folder.join("commands.yaml"), text).unwrap();
    interlock(&setup.folder, port, &["workflow", "apply", "commands.yaml"]);
}

/// Whether the run is over. Of what is in doubt, a person looks into the ledger.
async fn has_ended(client: &Client, ledger: &Ledger, id: &str) -> bool {
    let run = client.run(id).await;
    match run["state"].as_str().unwrap() {
        "succeeded" => true,
        "failed" | "canceled" => panic!("{id} ended badly: {run}"),
        "paused" => {
            for step in client.steps(id).await.iter().filter(|step| step["state"] == "in_doubt") {
                let key = step["key"].as_str().unwrap();
                let outcome = if ledger.happened(id, key) { "happened" } else { "did_not_happen" };
                client.resolve(id, key, outcome).await;
            }
            false
        }
        _ => false,
    }
}

/// The ledger against the runs: each command there, what must not be repeated once, the others not more often than they were
/// tried.
async fn judge(client: &Client, ledger: &Ledger, runs: &[String]) {
    let calls = ledger.calls();
    let mut expected = 0;
    for id in runs {
        for step in client.steps(id).await {
            let key = step["key"].as_str().unwrap();
            let mark = format!("#{id}/{key}/");
            let called: u32 = calls.iter().filter(|(call, _)| call.contains(&mark)).map(|(_, count)| count).sum();
            expected += calls.keys().filter(|call| call.contains(&mark)).count();
            let attempts = u32::try_from(step["attempt"].as_u64().unwrap()).unwrap();
            let most = if key == "once" { 1 } else { attempts };
            assert!((1..=most).contains(&called), "{id} {key}: {attempts} attempts, but {called} calls: {step}");
        }
    }
    assert_eq!(calls.len(), expected, "commands that belong to no run");
}
