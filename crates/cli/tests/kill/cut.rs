//! Connections of clients and workers that are cut behind every byte of a request, and of an answer: nothing is lost, and
//! nothing is done twice.
//!
//! `INTERLOCK_CUT_BYTES` sets up to which byte (default below).

use std::time::Duration;

use crate::client::Client;
use crate::cutter::Cutter;
use crate::database::Database;
use crate::fleet::Setup;
use crate::ledger::Ledger;
use crate::operators::Operators;
use crate::{db_check, folder, free_port, number};

/// About as long as the operators' requests with their heads. `make soak` goes through the answers to the end as well.
const BYTES_MAX: u64 = 420;
/// Workers lose most of their connections as well; their leases should outlive that.
const LEASE_MS: u64 = 8_000;
/// Workers keep their connections, so they get through fewer of them.
const WORKER_STRIDE: usize = 7;
/// Behind this byte at least of what workers send, and are answered, their connections are cut.
const WORKER_BYTES_MIN: usize = 70;
/// How long that is waited for where the clients are through before.
const WORKERS_WITHIN: Duration = Duration::from_mins(2);
/// Runs that are looked after at the same time.
const OPEN_MAX: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_at_every_byte_lose_and_repeat_nothing() {
    let bytes_max = number("INTERLOCK_CUT_BYTES", BYTES_MAX) as usize;
    let database = Database::create("cut").await;
    let folder = folder("cut");
    let ledger = Ledger::start(&folder).await;
    let setup = Setup { folder: folder.clone(), store: database.url, ledger_port: ledger.port, lease_ms: LEASE_MS };
    let ports = [free_port(), free_port()];
    let mut servers = vec![setup.server(ports[0])];
    let client = Client::new(vec![ports[0]], &folder).await;
    servers.push(setup.server(ports[1]));
    let approver = client.new_person("ada").await;

    let between = Cutter::start(ports[0], bytes_max, 1).await;
    let beside = Cutter::start(ports[1], bytes_max, WORKER_STRIDE).await;
    let workers = [setup.worker(0, beside.port), setup.worker(1, beside.port)];
    let (client, approver) = (client.connecting_anew(between.port), approver.connecting_anew(between.port));
    let mut operators = Operators { client: &client, approver: &approver, ledger: &ledger, runs: Vec::new() };
    let since = tokio::time::Instant::now();
    let are_workers_cut = || beside.reached() >= WORKER_BYTES_MIN || since.elapsed() > WORKERS_WITHIN;
    while between.reached() <= bytes_max || !are_workers_cut() {
        if operators.look_after(OPEN_MAX).await < OPEN_MAX {
            operators.start().await;
        }
    }
    println!("cut for {:?}", since.elapsed());
    operators.finish().await;
    operators.judge().await;
    println!(
        "{} runs; cut up to byte {} of clients' requests and answers, {} of workers'",
        operators.runs.len(),
        between.reached(),
        beside.reached()
    );
    // Their heads are longer than this, so some were cut within.
    assert!(beside.reached() >= WORKER_BYTES_MIN, "workers' connections were hardly cut");
    assert!(servers.iter_mut().all(|server| !server.gave_up()), "see {}", folder.display());
    drop((workers, servers));
    db_check(&setup.folder, &setup.store);
    let _ = std::fs::remove_dir_all(&folder);
}
