//! Real processes, killed and frozen at random: nothing is lost, nothing is done twice, nothing is stuck.
//!
//! `INTERLOCK_KILLS` sets the number of blows (30 a database by default; `make soak` uses thousands),
//! `INTERLOCK_KILL_SEED` repeats a sequence of blows.

#[path = "kill/client.rs"]
mod client;
#[path = "kill/fleet.rs"]
mod fleet;
#[path = "kill/ledger.rs"]
mod ledger;

use std::collections::HashSet;
use std::time::Duration;

use client::Client;
use fleet::{Blow, Member, Setup};
use ledger::Ledger;
use serde_json::{Value, json};

const LEASE_MS: u64 = 1_600;
/// Runs that are started for each blow.
const RUNS_PER_BLOW: usize = 2;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn plan() -> Value {
    let retry = json!({ "max_attempts": 100, "backoff": { "fixed": { "delay": 20 } } });
    let append = |key: &str, effect: &str| json!({ "key": key, "kind": "task", "handler": "append", "effect": effect, "retry": retry });
    json!({ "workflow": "ledger", "version": 1, "steps": [
        append("first", "keyed"),
        { "key": "pause", "kind": "wait", "for": 30 },
        append("second", "unsafe"),
        append("third", "keyed"),
    ]})
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_on_sqlite() {
    let folder = folder("sqlite");
    let store = format!("sqlite:{}", folder.join("kill.db").display());
    survive(Setup { folder, store, ledger_port: 0, lease_ms: LEASE_MS }, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_on_postgres() {
    let server = std::env::var("INTERLOCK_TEST_POSTGRES")
        .expect("INTERLOCK_TEST_POSTGRES is not set: run `make test`, or scripts/with-postgres");
    let name = format!("kill_{}", std::process::id());
    let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    let store = server.replace("/postgres?", &format!("/{name}?"));
    survive(Setup { folder: folder("postgres"), store, ledger_port: 0, lease_ms: LEASE_MS }, 2).await;
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("interlock-kill-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn survive(mut setup: Setup, servers: usize) {
    let blows = number("INTERLOCK_KILLS", 30);
    let seed = number("INTERLOCK_KILL_SEED", u64::from(std::process::id()));
    println!("INTERLOCK_KILL_SEED={seed} INTERLOCK_KILLS={blows}");
    let mut random = fastrand::Rng::with_seed(seed);
    let ledger = Ledger::start().await;
    setup.ledger_port = ledger.port;

    let ports: Vec<u16> = (0..servers).map(|_| free_port()).collect();
    let mut fleet: Vec<Member> = ports.iter().map(|port| setup.server(*port)).collect();
    let workers = 3;
    fleet.extend((0..workers).map(|number| setup.worker(number, ports[number % ports.len()])));
    let client = Client::new(ports, &setup.folder).await;
    let plan = plan();

    let mut runs = Vec::new();
    let mut dealt: HashSet<String> = HashSet::new();
    for blow in 0..blows {
        for _ in 0..RUNS_PER_BLOW {
            runs.push(client.start(&plan, &format!("run-{}", runs.len())).await);
        }
        tokio::time::sleep(Duration::from_millis(random.u64(50..400))).await;
        let victim = random.usize(..fleet.len());
        let kind = match random.u32(..10) {
            0..=6 => Blow::Kill,
            7..=8 => Blow::Freeze,
            _ => Blow::Terminate,
        };
        dealt.insert(format!("{kind:?} {}", if victim < servers { "server" } else { "worker" }));
        fleet[victim].suffer(kind, Duration::from_millis(LEASE_MS * 3 / 2)).await;
        resolve_doubts(&client, &ledger, &runs).await;
        for member in &mut fleet {
            assert!(
                !member.gave_up(),
                "{} ended by itself after blow {blow}; see {}",
                member.name,
                setup.folder.display()
            );
        }
    }
    finish(&client, &ledger, &runs).await;
    judge(&client, &ledger, &runs).await;
    println!("{} runs, {blows} blows: {dealt:?}", runs.len());
    assert!(dealt.contains("Kill server") && dealt.contains("Kill worker"), "the blows missed: {dealt:?}");

    drop(fleet);
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_interlock"))
        .args(["db", "check", "--store", &setup.store])
        .output()
        .unwrap();
    assert!(
        check.status.success(),
        "{}{}",
        String::from_utf8_lossy(&check.stdout),
        String::from_utf8_lossy(&check.stderr)
    );
    let _ = std::fs::remove_dir_all(&setup.folder);
}

/// What an operator would do: look at the outside world, and say what happened.
async fn resolve_doubts(client: &Client, ledger: &Ledger, runs: &[String]) {
    for run in runs.iter().rev().take(40) {
        if client.run(run).await["state"] == "paused" {
            for step in client.steps(run).await.iter().filter(|step| step["state"] == "in_doubt") {
                let key = step["key"].as_str().unwrap();
                let outcome = if ledger.happened(run, key) { "happened" } else { "did_not_happen" };
                client.resolve(run, key, outcome).await;
            }
        }
    }
}

/// The blows are over: everything must come to its end.
async fn finish(client: &Client, ledger: &Ledger, runs: &[String]) {
    for _ in 0..1_200 {
        let mut open = Vec::new();
        for run in runs {
            let state = client.run(run).await;
            match state["state"].as_str().unwrap() {
                "succeeded" => {}
                "failed" | "canceled" => panic!("{run} ended badly: {state}"),
                _ => open.push(run.clone()),
            }
        }
        if open.is_empty() {
            return;
        }
        resolve_doubts(client, ledger, &open).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut stuck = Vec::new();
    for run in runs {
        let state = client.run(run).await;
        if state["state"] != "succeeded" {
            stuck.push(format!("{state}"));
        }
    }
    panic!("{} runs are stuck:\n{}", stuck.len(), stuck.join("\n"));
}

/// The ledger against the runs: every effect there, the unsafe ones exactly once.
async fn judge(client: &Client, ledger: &Ledger, runs: &[String]) {
    let calls = ledger.calls.lock().unwrap().clone();
    for run in runs {
        assert!(client.steps(run).await.iter().all(|step| step["state"] == "succeeded"), "{run}");
        for step in ["first", "second", "third"] {
            let mark = format!("#{run}/{step}/");
            let keys: Vec<_> = calls.iter().filter(|(key, _)| key.contains(&mark)).collect();
            assert_eq!(keys.len(), 1, "{run} {step}: one key for one effect, but {keys:?}");
            if step == "second" {
                assert_eq!(*keys[0].1, 1, "{run} {step}: an unsafe effect happened more than once");
            }
        }
    }
    assert_eq!(calls.len(), runs.len() * 3, "effects that belong to no run");
}
