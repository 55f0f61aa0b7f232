//! A rolling upgrade: the servers of one database are replaced by those of another release one after the other, under load,
//! and then back again. On the way each of them crashes, and workers of both releases work for both.
//!
//! `INTERLOCK_PREVIOUS_BINARY` names the binary of the release before (`scripts/rolling-upgrade` builds it). Without it this
//! release is both, which still shows that replacing servers one by one loses and repeats nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;
use crate::database::Database;
use crate::fleet::{Blow, INTERLOCK, Setup};
use crate::ledger::Ledger;
use crate::operators::Operators;
use crate::{LEASE_MS, db_check, folder, free_port};

const SERVERS: usize = 2;
const WORKERS: usize = 4;
/// Runs that are started before each replacement.
const RUNS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_two_releases_take_turns() {
    let previous =
        std::env::var_os("INTERLOCK_PREVIOUS_BINARY").map_or_else(|| PathBuf::from(INTERLOCK), PathBuf::from);
    let database = Database::create("rolling").await;
    let folder = folder("rolling");
    let ledger = Ledger::start(&folder).await;
    let store = database.url.clone();
    let setup = Setup { folder: folder.clone(), store, ledger_port: ledger.port, lease_ms: LEASE_MS };
    let ports: Vec<u16> = (0..SERVERS).map(|_| free_port()).collect();
    let mut servers = vec![setup.server_of(&previous, ports[0])];
    let client = Client::new(vec![ports[0]], &folder).await;
    servers.extend(ports[1..].iter().map(|port| setup.server_of(&previous, *port)));
    // Workers of both releases, at servers that are now of the one and now of the other.
    let worker = |number| {
        let binary = if number < WORKERS / 2 { &previous } else { Path::new(INTERLOCK) };
        setup.worker_of(binary, number, ports[number % SERVERS])
    };
    let workers: Vec<_> = (0..WORKERS).map(worker).collect();
    client.limit_own_tenant(crate::LIMIT).await;
    let approver = client.new_person("ada").await.over(&ports);
    let client = client.over(&ports);
    let mut operators = Operators { client: &client, approver: &approver, ledger: &ledger, runs: Vec::new() };

    for binary in [Path::new(INTERLOCK), &previous, Path::new(INTERLOCK)] {
        for (number, port) in ports.iter().enumerate() {
            for _ in 0..RUNS {
                operators.start().await;
            }
            servers[number].replace(|| setup.server_of(binary, *port)).await;
            operators.look_after(RUNS).await;
            // The next one, mostly of the other release, crashes and comes back.
            servers[(number + 1) % SERVERS].suffer(Blow::Kill, Duration::ZERO, Duration::ZERO).await;
            operators.look_after(RUNS).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            let stays = servers.iter_mut().all(|server| !server.gave_up());
            assert!(stays, "a server does not serve this store; see {}", folder.display());
        }
    }
    operators.finish().await;
    operators.judge().await;
    assert!(servers.iter_mut().all(|server| !server.gave_up()), "see {}", folder.display());
    println!("{} runs through {} replacements", operators.runs.len(), 3 * SERVERS);
    drop((servers, workers));
    db_check(&setup.folder, &setup.store);
    let _ = std::fs::remove_dir_all(&folder);
}
