//! The database fails over to a standby that is behind: what was committed last is gone, and it is unknown what of it
//! was done outside. The servers notice, and everything that acts on the outside waits for a person.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::cluster::Cluster;
use crate::fleet::{Member, Setup};
use crate::ledger::Ledger;
use crate::operators::{Story, plan};
use crate::{db_check, folder, free_port};

/// Runs that are known to the standby, and are held at their signal until it is behind.
const KNOWN: usize = 12;

/// No process is killed before the failover, so no worker may lose its lease on a busy machine: its effect would be in
/// doubt.
const LONG_LEASE_MS: u64 = 10_000;

/// What people need to look at and settle after the failover.
struct Aftermath<'a> {
    client: &'a Client,
    ledger: &'a Ledger,
}

impl Aftermath<'_> {
    /// One look at a run that is paused: the ledger says what of its steps happened that the database knows nothing of.
    async fn settle(&self, run: &str) {
        let steps = self.client.steps(run).await;
        if let Some(doubted) = steps.iter().find(|step| step["state"] == "in_doubt") {
            let key = doubted["key"].as_str().unwrap();
            let outcome = if self.ledger.happened(run, key) { "happened" } else { "did_not_happen" };
            self.client.resolve(run, key, outcome).await;
            return;
        }
        let unknown = steps.iter().filter(|step| step["state"] != "succeeded");
        if unknown.map(|step| step["key"].as_str().unwrap()).any(|key| self.ledger.happened(run, key)) {
            let because = json!({ "reason": "the ledger says that it went on before the failover" });
            self.client.tell(run, "cancel", because).await;
        } else {
            self.client.tell(run, "resume", json!({})).await;
        }
    }

    async fn finish(&self, runs: &[String]) {
        let mut open: HashSet<&String> = runs.iter().collect();
        let mut parked = HashSet::new();
        for _ in 0..900 {
            for run in open.clone() {
                match self.client.run(run).await["state"].as_str().unwrap() {
                    "succeeded" | "canceled" => drop(open.remove(run)),
                    "paused" => {
                        parked.insert(run);
                        self.settle(run).await;
                    }
                    // The signal is among what was lost.
                    "waiting_signal" if parked.contains(run) => {
                        self.client.tell(run, "signals", json!({ "type": "go" })).await;
                    }
                    _ => {}
                }
            }
            if open.is_empty() {
                assert_eq!(parked.len(), runs.len(), "a run went on before a person had looked");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for run in open {
            println!("stuck: {} {:?}", self.client.run(run).await, self.client.steps(run).await);
        }
        panic!("runs are stuck after the failover");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_behind_repeats_nothing() {
    let mut primary = Cluster::start("primary").await;
    let standby = primary.standby("standby").await;
    let folder = folder("failover");
    let ledger = Ledger::start(&folder).await;
    let setup = Setup {
        folder: folder.clone(),
        store: primary.url(&[&standby]),
        ledger_port: ledger.port,
        lease_ms: LONG_LEASE_MS,
    };
    let ports = [free_port(), free_port()];
    let mut servers = vec![setup.server(ports[0])];
    let client = Client::new(vec![ports[0]], &folder).await;
    servers.push(setup.server(ports[1]));
    let worker = setup.worker(0, ports[0]);
    let client = client.over(&ports);

    // Every run stands before its unsafe step when the standby falls behind.
    let mut known = Vec::new();
    for number in 0..KNOWN {
        known.push(client.start(&plan(Story::Signal), &format!("known-{number}")).await);
    }
    for run in &known {
        while client.run(run).await["state"] != "waiting_signal" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    caught_up(&primary, &standby).await;
    let sender = cut_off(&primary).await;

    // What follows is acknowledged and lost: half of the known runs act, and others are started.
    for run in &known[..KNOWN / 2] {
        assert!(client.tell(run, "signals", json!({ "type": "go" })).await < 300);
    }
    let lost = client.start(&plan(Story::Plain), "lost").await;
    for run in known[..KNOWN / 2].iter().chain([&lost]) {
        while client.run(run).await["state"] != "succeeded" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let acted = known.iter().filter(|run| ledger.happened(run, "second")).count();
    assert_eq!(acted, KNOWN / 2);

    // The worker goes with the primary: it would still know what it did.
    drop(worker);
    primary.kill();
    let _ = std::process::Command::new("kill").args(["-KILL", &sender]).status();
    standby.connect().await.query_one("SELECT pg_promote()", &[]).await.unwrap();

    // The servers notice and end, or refuse; a supervisor starts them again.
    let mut supervised = supervise(servers);
    let worker = setup.worker(1, ports[1]);
    let aftermath = Aftermath { client: &client, ledger: &ledger };
    let epoch = "SELECT value FROM meta WHERE key = 'store_epoch'";
    let watch = standby.connect().await;
    for waited in 0.. {
        supervised = supervise(supervised);
        if watch.query_one(epoch, &[]).await.unwrap().get::<_, String>(0) == "2" {
            break;
        }
        assert!(waited < 1_800, "no server has noticed that the database failed over");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Those that live through it refuse for good.
    for server in &mut supervised {
        server.suffer(crate::fleet::Blow::Kill, Duration::ZERO, Duration::ZERO).await;
    }
    aftermath.finish(&known).await;

    let calls = ledger.calls();
    for run in &known {
        let mark = format!("#{run}/second/");
        let called: Vec<_> = calls.iter().filter(|(call, _)| call.contains(&mark)).collect();
        assert_eq!(called.len(), 1, "{run}: {called:?}");
        assert_eq!(*called[0].1, 1, "{run}: an unsafe effect was repeated after the failover");
    }
    drop((supervised, worker));
    db_check(&folder, &standby.url(&[]));
    let _ = std::fs::remove_dir_all(&folder);
}

/// Starts again what has ended.
fn supervise(mut servers: Vec<Member>) -> Vec<Member> {
    servers.iter_mut().filter_map(|server| server.gave_up().then_some(server)).for_each(Member::restart);
    servers
}

/// Waits until the standby has replayed what the primary has written.
async fn caught_up(primary: &Cluster, standby: &Cluster) {
    let written = primary.connect().await.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap();
    let reached = format!("SELECT pg_last_wal_replay_lsn() >= '{}'::pg_lsn", written.get::<_, String>(0));
    let standby = standby.connect().await;
    while !standby.query_one(&reached, &[]).await.unwrap().get::<_, Option<bool>>(0).unwrap_or(false) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Stops the process that sends to the standby; answers with its number.
async fn cut_off(primary: &Cluster) -> String {
    let row = primary.connect().await.query_one("SELECT pid::text FROM pg_stat_replication", &[]).await.unwrap();
    let sender: String = row.get(0);
    assert!(std::process::Command::new("kill").args(["-STOP", &sender]).status().unwrap().success());
    sender
}

/// A commit is tried for as long as the database is away; a server that is told to stop does not wait for that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_ends_though_its_database_is_away() {
    let mut cluster = Cluster::start("away").await;
    let setup = Setup { folder: folder("away"), store: cluster.url(&[]), ledger_port: 0, lease_ms: LONG_LEASE_MS };
    let port = free_port();
    let mut server = setup.server(port);
    let client = Client::new(vec![port], &setup.folder).await;
    client.answers().await;
    cluster.kill();
    let body = json!({ "plan": plan(Story::Plain), "inputs": {} });
    let start = client.send(reqwest::Method::POST, "/runs", Some(&body), None);
    // Answered or not, the server has something to commit.
    let _ = tokio::time::timeout(Duration::from_secs(2), start).await;
    let ended = tokio::time::timeout(Duration::from_mins(1), server.terminate()).await;
    assert!(ended.is_ok(), "it waits for a database that does not come back");
    let _ = std::fs::remove_dir_all(&setup.folder);
}
