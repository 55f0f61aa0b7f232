//! Servers whose clocks are wrong by as much as is tolerated: signals that were acknowledged are heard, leases last as long
//! as they should, and lost workers are replaced in time. A server whose clock is further off does not start.

use std::time::Duration;

use interlock_core::limits::CLOCK_SKEW_TOLERATED;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::Client;
use crate::clock::WrongClock;
use crate::cluster::Cluster;
use crate::database::Database;
use crate::fleet::{Blow, Member, Setup};
use crate::freeze::{has_machine, takeover_max};
use crate::ledger::Ledger;
use crate::{CLOCKS_MS, db_check, folder, free_port};

/// Long enough for a busy machine to renew it, also where it ends early by the tolerated skew.
const LEASE_MS: u64 = 8_000;
/// A step takes several leases.
const SLOW: Duration = Duration::from_secs(20);
/// How far the database's clock is moved: nearly the tolerated skew, since servers follow it with some noise.
const STEP_MS: i64 = 440;
/// How often it is tried to have the servers differ.
const STEPS_MAX: i64 = 5;
/// Runs that wait for a signal, each way.
const WAITS: usize = 8;
const HOUR_MS: i64 = 3_600_000;
const TOLERATED_MS: i64 = CLOCK_SKEW_TOLERATED.0 as i64;
/// What a busy machine takes to start two runs.
const BETWEEN_STARTS_MS: i64 = 10_000;

/// Two servers that differ in what time it is.
struct Pair {
    setup: Setup,
    ledger: Ledger,
    client: Client,
    ahead: u16,
    behind: u16,
}

impl Pair {
    /// How far the clock of the server ahead is from the other's. Time goes on between two starts, so the largest
    /// difference of several is the nearest.
    async fn apart_ms(&self, round: i64) -> i64 {
        let mut largest = i64::MIN;
        let (ahead, behind) = (self.client.through(self.ahead), self.client.through(self.behind));
        for number in 0..12 {
            let first = ahead.start(&waiting(), &format!("clock-{round}-ahead-{number}")).await;
            let second = behind.start(&waiting(), &format!("clock-{round}-behind-{number}")).await;
            let [first, second] = [ahead.run(&first).await, behind.run(&second).await];
            let created = |run: &Value| run["created_at"].as_i64().unwrap();
            largest = largest.max(created(&first) - created(&second));
        }
        largest
    }

    /// A signal comes through the other server, as soon as the run is there to wait for it.
    async fn signals_are_heard(&self) {
        for (opens, hears) in [(self.ahead, self.behind), (self.behind, self.ahead)] {
            let (opener, sender) = (self.client.through(opens), self.client.through(hears));
            for number in 0..WAITS {
                let run = opener.start(&waiting(), &format!("wait-{opens}-{number}")).await;
                let status = sender.tell(&run, "signals", json!({ "type": "go" })).await;
                assert!(status < 300, "{status}");
                ends_well(&opener, &run, Duration::from_mins(1)).await;
            }
        }
    }

    /// Steps that take longer than a lease, at workers of both servers: neither server takes the other's for lost.
    async fn leases_last(&self) {
        let mut runs = Vec::new();
        let workers =
            [("slow-ahead", self.ahead), ("slow-behind", self.behind)].map(|(task, port)| self.worker(task, port));
        for task in ["slow-ahead", "slow-behind"] {
            runs.push((task, self.client.start(&slow(task, "unsafe"), task).await));
        }
        for (task, run) in runs {
            ends_well(&self.client, &run, SLOW * 4).await;
            let steps = self.client.steps(&run).await;
            assert_eq!(steps[0]["attempt"], 1, "the lease of {task} was not waited for: {steps:?}");
            assert!(self.ledger.happened(&run, "only"));
        }
        assert!(self.ledger.calls().values().all(|count| *count == 1), "{:?}", self.ledger.calls());
        drop(workers);
    }

    /// The worker of either server dies, and one of the other's goes on with its step.
    async fn lost_workers_are_replaced(&self) {
        for (dies, goes_on) in [(self.ahead, self.behind), (self.behind, self.ahead)] {
            let task = format!("lost-{dies}");
            let lost = self.worker(&task, dies);
            let run = self.client.start(&slow(&task, "keyed"), &task).await;
            while self.client.steps(&run).await[0]["state"] != "running" {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            drop(lost);
            let since = Instant::now();
            let _next = self.worker(&task, goes_on);
            while self.client.steps(&run).await[0]["attempt"] == 1 {
                assert!(since.elapsed() < takeover_max(), "no worker goes on with {run} after {:?}", since.elapsed());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            println!("the step of a lost worker was taken over after {:?}", since.elapsed());
        }
    }

    fn worker(&self, task: &str, port: u16) -> Member {
        let text = format!(
            "#!/usr/bin/env bash\nset -eu\ncat >/dev/null\nsleep {}\nexec 3<>/dev/tcp/127.0.0.1/{}\n\
             printf '%s\\n' \"$INTERLOCK_EFFECT_KEY\" >&3\nread -r word <&3\n[ \"$word\" = ok ]\n",
            SLOW.as_secs(),
            self.ledger.port,
        );
        self.setup.worker_with(0, port, "2", task, &self.setup.script("slow.sh", &text))
    }
}

fn waiting() -> Value {
    let go = json!({ "type": "go", "accept": "since_step" });
    json!({ "workflow": "waiting", "version": 1, "steps": [{ "key": "only", "kind": "wait", "signal": go }] })
}

fn slow(task: &str, effect: &str) -> Value {
    let retry = json!({ "max_attempts": 9, "backoff": { "fixed": { "delay": 20 } } });
    json!({ "workflow": task, "version": 1, "steps": [
        { "key": "only", "kind": "task", "handler": task, "effect": effect, "retry": retry },
    ]})
}

async fn ends_well(client: &Client, run: &str, within: Duration) {
    let since = Instant::now();
    loop {
        let shown = client.run(run).await;
        match shown["state"].as_str().unwrap() {
            "succeeded" => return,
            state @ ("failed" | "canceled" | "paused") => panic!("{state}: {shown}"),
            _ => {}
        }
        assert!(since.elapsed() < within, "still {} after {within:?}: {shown}", shown["state"]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The machines' clocks are minutes away from the database's, and are set while the servers run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_whose_clocks_are_wrong_agree() {
    let database = Database::create("skew").await;
    let folder = folder("skew");
    let ledger = Ledger::start(&folder).await;
    let setup =
        Setup { folder: folder.clone(), store: database.url.clone(), ledger_port: ledger.port, lease_ms: LEASE_MS };
    let [ahead, behind] = [free_port(), free_port()];
    let fast = WrongClock::new(&folder, "ahead", CLOCKS_MS[1]);
    let slow = WrongClock::new(&folder, "behind", CLOCKS_MS[2]);
    let first = setup.server_with_clock(behind, &slow);
    let client = Client::new(vec![behind], &folder).await;
    let second = setup.server_with_clock(ahead, &fast);
    let client = client.over(&[ahead, behind]);
    let pair = Pair { setup, ledger, client, ahead, behind };
    let apart_ms = pair.apart_ms(0).await;
    println!("the servers are {apart_ms} ms apart, their machines {} ms", CLOCKS_MS[1] - CLOCKS_MS[2]);
    assert!((-BETWEEN_STARTS_MS..TOLERATED_MS).contains(&apart_ms), "{apart_ms} ms apart");
    pair.signals_are_heard().await;
    fast.set(-HOUR_MS);
    slow.set(HOUR_MS);
    pair.leases_last().await;
    pair.lost_workers_are_replaced().await;
    drop((first, second));
    db_check(&pair.setup.folder, &pair.setup.store);
    let _ = std::fs::remove_dir_all(&folder);
}

/// The database's clock moves between the starts of two servers. Until the first one follows it, they differ.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_differ_by_the_tolerated_skew_agree() {
    let folder = folder("step");
    let clock = WrongClock::new(&folder, "database", 0);
    let cluster = Cluster::with_clock("step", Some(&clock)).await;
    let ledger = Ledger::start(&folder).await;
    let setup = Setup { folder: folder.clone(), store: cluster.url(&[]), ledger_port: ledger.port, lease_ms: LEASE_MS };
    let [ahead, behind] = [free_port(), free_port()];
    let mut first = setup.server(behind);
    let client = Client::new(vec![behind], &folder).await;
    let mut second = setup.server(ahead);
    let client = client.over(&[ahead, behind]);
    let pair = Pair { setup, ledger, client, ahead, behind };
    // On a busy machine the first may follow the clock before the second is there.
    let mut apart_ms = 0;
    for round in 1..=STEPS_MAX {
        first.suffer(Blow::Kill, Duration::ZERO, Duration::ZERO).await;
        pair.client.through(behind).answers().await;
        clock.set(STEP_MS * round);
        second.suffer(Blow::Kill, Duration::ZERO, Duration::ZERO).await;
        pair.client.through(ahead).answers().await;
        apart_ms = pair.apart_ms(round).await;
        println!("the servers are {apart_ms} ms apart");
        // The rest is what two starts take, one after the other.
        if apart_ms > STEP_MS / 2 {
            break;
        }
    }
    let enough_ms = if has_machine() { STEP_MS / 2 } else { STEP_MS / 4 };
    assert!(apart_ms > enough_ms, "the servers are only {apart_ms} ms apart: this shows nothing");
    pair.signals_are_heard().await;
    pair.leases_last().await;
    drop((first, second));
    db_check(&pair.setup.folder, &pair.setup.store);
    let _ = std::fs::remove_dir_all(&folder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_is_too_far_off_does_not_start() {
    let database = Database::create("far").await;
    let folder = folder("far");
    let setup = Setup { folder: folder.clone(), store: database.url, ledger_port: 0, lease_ms: LEASE_MS };
    for offset_ms in [6 * 60_000, -6 * 60_000] {
        let clock = WrongClock::new(&folder, "far", offset_ms);
        let mut server = setup.server_with_clock(free_port(), &clock);
        let since = Instant::now();
        while !server.gave_up() {
            assert!(since.elapsed() < Duration::from_mins(2), "it serves with a clock that is {offset_ms} ms off");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let log = std::fs::read_to_string(folder.join("fleet.log")).unwrap();
        assert!(log.contains("away from the database's"), "{log}");
        std::fs::remove_file(folder.join("fleet.log")).unwrap();
    }
    let _ = std::fs::remove_dir_all(&folder);
}
