//! A server that is stopped in the middle of a commit: the others go on, and its workers' steps are taken over. So are
//! those of a worker that is stopped.
//!
//! `INTERLOCK_FREEZES` sets how often (3 by default, a third of that for each kind of takeover; `make soak` uses more),
//! `INTERLOCK_FAILOVERS` how many workers are killed (5 by default); `INTERLOCK_TEST_BARS` holds it to the promised times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Client;
use crate::database;
use crate::fleet::{Member, Setup};
use crate::{FolderGuard, folder, free_port, number};

/// The longest that a client may wait for a commit while another server is frozen: five seconds are promised. After three
/// the database takes from the frozen one what it holds.
fn gap_max() -> Duration {
    Duration::from_secs(if has_machine() { 5 } else { 10 })
}

/// The longest that a step of a lost worker may wait for the next one: 30 seconds are promised.
pub fn takeover_max() -> Duration {
    Duration::from_secs(if has_machine() { 30 } else { 60 })
}

/// `make soak` has the machine to itself and holds the tests to what is promised; beside other tests they have twice as
/// long.
pub fn has_machine() -> bool {
    std::env::var_os("INTERLOCK_TEST_BARS").is_some()
}

const HELD_STEPS: usize = 20;
/// What servers have where nothing else is said.
const DEFAULT_LEASE_MS: u64 = 20_000;

fn plan(handler: &str) -> Value {
    json!({ "workflow": handler, "version": 1, "steps": [
        { "key": "only", "kind": "task", "handler": handler, "effect": "idempotent" },
    ]})
}

/// Starts runs one after the other, and notes the longest time between two answers.
struct Load {
    stop: Arc<AtomicBool>,
    tasks: Vec<(&'static str, tokio::task::JoinHandle<Duration>)>,
}

impl Load {
    fn begin(callers: Vec<(&'static str, Client)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = callers.into_iter().map(|(name, client)| {
            let stop = Arc::clone(&stop);
            (name, tokio::spawn(async move { longest_gap(&client, &stop).await }))
        });
        Self { tasks: tasks.collect(), stop }
    }

    /// The longest gap of each caller. One that still waits has waited until now.
    async fn end(self) -> Vec<(&'static str, Duration)> {
        self.stop.store(true, Ordering::Relaxed);
        let mut gaps = Vec::new();
        for (name, task) in self.tasks {
            gaps.push((name, task.await.unwrap()));
        }
        gaps
    }

    /// Callers of a frozen server are not waited for.
    fn abandon(self) {
        self.tasks.iter().for_each(|(_, task)| task.abort());
    }
}

/// Between two runs: often enough to meet a transaction, and without taking the machine from the servers.
const PAUSE: Duration = Duration::from_millis(20);

async fn longest_gap(client: &Client, stop: &AtomicBool) -> Duration {
    let body = json!({ "plan": plan("quick"), "inputs": {} });
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let (status, answer) = client.with_retries(Method::POST, "/runs", Some(&body), None).await;
        assert_eq!(status, 201, "{answer}");
        longest = longest.max(began.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    longest
}

/// Stops the server at a moment at which one of its sessions has a transaction open: it holds what that has locked.
async fn freeze_in_a_transaction(server: &mut Member, watch: &tokio_postgres::Client) {
    let open =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'interlock'
         AND state LIKE 'idle in transaction%' AND clock_timestamp() - state_change > interval '50 ms'";
    for _ in 0..500 {
        server.freeze();
        tokio::time::sleep(Duration::from_millis(80)).await;
        if watch.query_one(open, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            return;
        }
        server.thaw();
        tokio::time::sleep(Duration::from_millis(7)).await;
    }
    panic!("the server was never met in a transaction");
}

struct FreezeHarness {
    setup: Setup,
    database: database::Database,
    first: Member,
    _second: Member,
    ports: [u16; 2],
    client: Client,
    other: Client,
    /// The last to be dropped, after the servers.
    _folder: FolderGuard,
}

async fn harness(name: &str) -> FreezeHarness {
    let database = database::Database::create(name).await;
    let setup = Setup { folder: folder(name), store: database.url.clone(), ledger_port: 0, lease_ms: DEFAULT_LEASE_MS };
    let ports = [free_port(), free_port()];
    let first = setup.server(ports[0]);
    let client = Client::new(vec![ports[0]], &setup.folder).await;
    let second = setup.server(ports[1]);
    client.limit_own_tenant(500).await;
    let other = client.new_tenant("other").await;
    client.through(ports[1]).answers().await;
    let guard = FolderGuard(setup.folder.clone());
    FreezeHarness { setup, database, first, _second: second, ports, client, other, _folder: guard }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_stalls_nobody_for_long() {
    let mut harness = harness("freeze").await;
    let watch = harness.database.connect().await;
    let [frozen, alive] = harness.ports;
    for round in 0..number("INTERLOCK_FREEZES", 3) {
        let at_frozen = || harness.client.through(frozen);
        let load = Load::begin((0..6).map(|_| ("frozen", at_frozen())).collect());
        tokio::time::sleep(Duration::from_millis(300)).await;
        freeze_in_a_transaction(&mut harness.first, &watch).await;
        let others = Load::begin(vec![
            ("the limited tenant", harness.client.through(alive)),
            ("the same tenant again", harness.client.through(alive)),
            ("another tenant", harness.other.through(alive)),
        ]);
        tokio::time::sleep(gap_max() + Duration::from_secs(2)).await;
        let gaps = others.end().await;
        println!("round {round}: {gaps:?}");
        for (who, gap) in gaps {
            assert!(gap <= gap_max(), "round {round}: {who} waited for {gap:?} while another server was frozen");
        }
        load.abandon();
        harness.first.thaw();
        harness.client.through(frozen).answers().await;
    }
    drop(harness.first);
}

impl FreezeHarness {
    /// A worker at a server. The first attempt at each step hangs.
    fn holding_worker(&self, number: usize, port: u16, slots: usize) -> Member {
        let script = self.setup.script("hold.sh", HOLD);
        self.setup.worker_with(number, port, &slots.to_string(), "hold", &script)
    }

    /// Runs whose steps hang at the workers that there are.
    async fn hold(&self, round: u64, steps: usize) -> Vec<String> {
        let mut held = Vec::new();
        for number in 0..steps {
            held.push(self.client.start(&plan("hold"), &format!("held-{round}-{number}")).await);
        }
        for run in &held {
            while self.client.steps(run).await[0]["state"] != "running" {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        held
    }

    /// The runs come to their end in time, through the server that is awake.
    async fn taken_over(&self, held: &[String], round: u64) {
        let since = Instant::now();
        let beside = self.client.through(self.ports[1]);
        let mut late = Vec::new();
        for run in held {
            while beside.run(run).await["state"] != "succeeded" {
                assert!(since.elapsed() < takeover_max() * 3, "{run} is not taken over at all");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            if since.elapsed() > takeover_max() {
                late.push((run, since.elapsed()));
            }
        }
        println!("round {round}: {} steps were taken over within {:?}", held.len(), since.elapsed());
        assert!(late.is_empty(), "round {round}: later than {:?}: {late:?}", takeover_max());
    }
}

fn takeovers() -> u64 {
    number("INTERLOCK_FREEZES", 3).div_ceil(3)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_of_a_frozen_servers_worker_are_taken_over() {
    let mut harness = harness("takeover").await;
    let watch = harness.database.connect().await;
    let [frozen, alive] = harness.ports;
    for round in 0..takeovers() {
        let _hung = harness.holding_worker(0, frozen, HELD_STEPS);
        let held = harness.hold(round, HELD_STEPS).await;
        let _next = harness.holding_worker(1, alive, HELD_STEPS);
        let load = Load::begin((0..4).map(|_| ("frozen", harness.client.through(frozen))).collect());
        tokio::time::sleep(Duration::from_millis(300)).await;
        freeze_in_a_transaction(&mut harness.first, &watch).await;
        harness.taken_over(&held, round).await;
        load.abandon();
        harness.first.thaw();
        harness.client.through(frozen).answers().await;
    }
    drop(harness.first);
}

/// A worker that wakes up after its steps were done elsewhere changes nothing any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_of_a_frozen_worker_are_taken_over() {
    let harness = harness("asleep").await;
    for round in 0..takeovers() {
        let mut frozen = harness.holding_worker(0, harness.ports[0], HELD_STEPS);
        let held = harness.hold(round, HELD_STEPS).await;
        let _next = harness.holding_worker(1, harness.ports[1], HELD_STEPS);
        frozen.freeze();
        harness.taken_over(&held, round).await;
        frozen.thaw();
        tokio::time::sleep(Duration::from_secs(1)).await;
        for run in &held {
            let steps = harness.client.steps(run).await;
            assert_eq!((&steps[0]["state"], &steps[0]["attempt"]), (&json!("succeeded"), &json!(2)), "{steps:?}");
        }
    }
}

/// Each in the middle of a step, and all at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_steps_of_killed_workers_are_taken_over() {
    let harness = harness("killed").await;
    let count = number("INTERLOCK_FAILOVERS", 5) as usize;
    let workers: Vec<Member> =
        (0..count).map(|number| harness.holding_worker(number, harness.ports[number % 2], 1)).collect();
    let held = harness.hold(0, count).await;
    let _next = harness.holding_worker(count, harness.ports[1], HELD_STEPS);
    drop(workers);
    harness.taken_over(&held, 0).await;
}

/// Hangs at the first attempt, longer than the test; later ones succeed at once.
const HOLD: &str = "#!/usr/bin/env bash\nset -eu\ncat >/dev/null\nif [ \"$INTERLOCK_ATTEMPT\" = 1 ]; then exec sleep 300; fi\nprintf '\"%s\"' \"$INTERLOCK_ATTEMPT\"\n";
