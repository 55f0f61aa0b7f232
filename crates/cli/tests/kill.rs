//! Real processes, killed and frozen at random: nothing is lost, nothing is done twice, nothing is stuck.
//!
//! `INTERLOCK_KILLS` sets the number of blows (`make soak` uses thousands; by default 30 on SQLite, 60 on PostgreSQL),
//! `INTERLOCK_KILL_SEED` repeats a sequence of blows.

#[path = "kill/client.rs"]
mod client;
#[path = "kill/clock.rs"]
mod clock;
#[path = "kill/cluster.rs"]
mod cluster;
#[path = "kill/commands.rs"]
mod commands;
#[path = "kill/crash.rs"]
mod crash;
#[path = "kill/cut.rs"]
mod cut;
#[path = "kill/cutter.rs"]
mod cutter;
#[path = "kill/database.rs"]
mod database;
#[path = "kill/failover.rs"]
mod failover;
#[path = "kill/fleet.rs"]
mod fleet;
#[path = "../../broker/tests/harness/free_port.rs"]
mod free_port;
#[path = "kill/freeze.rs"]
mod freeze;
#[path = "kill/ledger.rs"]
mod ledger;
#[path = "kill/operators.rs"]
mod operators;
#[path = "kill/rolling.rs"]
mod rolling;
#[path = "kill/skew.rs"]
mod skew;
#[path = "kill/target.rs"]
mod target;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use client::Client;
use clock::WrongClock;
use cluster::Cluster;
use fleet::{Deck, Member, Setup};
use free_port::free_port;
use ledger::Ledger;
use operators::Operators;

const LEASE_MS: u64 = 1_600;
/// Longer than the lease, than a database's session may stand still in a transaction, and than clients wait.
const LONG_FREEZE: Duration = Duration::from_secs(12);
/// Runs that are started for each blow.
const RUNS_PER_BLOW: usize = 2;
/// Fewer than the workers have slots, so that the limit is asked, and sometimes refuses.
const LIMIT: u32 = 8;
const WORKERS: usize = 3;
/// The database is killed by every so-many-th blow.
const DATABASE_EVERY: u64 = 20;
/// How far the machines' clocks are from the database's. A server refuses to start from five minutes on.
const CLOCKS_MS: [i64; 3] = [0, 280_000, -280_000];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("interlock-kill-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Removes a test's folder at its end. Where the test has failed, the folder stays, to be looked into.
struct FolderGuard(std::path::PathBuf);

impl Drop for FolderGuard {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_on_sqlite() {
    let folder = folder("sqlite");
    let store = format!("sqlite:{}", folder.join("kill.db").display());
    survive(Setup { folder, store, ledger_port: 0, lease_ms: LEASE_MS }, None, &[0], 30).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_on_postgres() {
    let cluster = Cluster::start("cluster").await;
    let store = cluster.url(&[]);
    let setup = Setup { folder: folder("postgres"), store, ledger_port: 0, lease_ms: LEASE_MS };
    survive(setup, Some(cluster), &CLOCKS_MS, 60).await;
}

/// Where a blow hits.
enum Victim {
    Member(usize),
    Database,
}

/// One server for each of the clocks.
async fn survive(mut setup: Setup, mut database: Option<Cluster>, clocks_ms: &[i64], blows: u64) {
    let blows = number("INTERLOCK_KILLS", blows);
    let seed = number("INTERLOCK_KILL_SEED", u64::from(std::process::id()));
    println!("INTERLOCK_KILL_SEED={seed} INTERLOCK_KILLS={blows}");
    let mut random = fastrand::Rng::with_seed(seed);
    let ledger = Ledger::start(&setup.folder).await;
    setup.ledger_port = ledger.port;

    let servers = clocks_ms.len();
    let ports: Vec<u16> = (0..servers).map(|_| free_port()).collect();
    let server = |number: usize| {
        let clock = WrongClock::new(&setup.folder, &format!("server-{number}"), clocks_ms[number]);
        setup.server_with_clock(ports[number], &clock)
    };
    let mut fleet = vec![server(0)];
    let client = Client::new(vec![ports[0]], &setup.folder).await;
    fleet.extend((1..servers).map(server));
    fleet.extend((0..WORKERS).map(|number| setup.worker(number, ports[number % ports.len()])));
    client.limit_own_tenant(LIMIT).await;
    let approver = client.new_person("ada").await.over(&ports);
    let client = client.over(&ports);
    let mut operators = Operators { client: &client, approver: &approver, ledger: &ledger, runs: Vec::new() };

    let mut dealt: BTreeMap<String, u32> = BTreeMap::new();
    let mut deck = Deck::default();
    let (mut database_gone_at, mut slow_starts) = (None, 0);
    for number in 0..blows {
        for _ in 0..RUNS_PER_BLOW {
            operators.start().await;
        }
        tokio::time::sleep(Duration::from_millis(random.u64(50..300))).await;
        fleet.iter_mut().for_each(Member::thaw_if_due);
        let victim = match number % DATABASE_EVERY {
            0 if number > 0 && database.is_some() => Victim::Database,
            _ => Victim::Member(random.usize(..fleet.len())),
        };
        let name = match victim {
            Victim::Database => {
                if let Some(database) = &mut database {
                    database_gone_at = Some(tokio::time::Instant::now());
                    database.kill_and_restart().await;
                }
                "Kill database".to_owned()
            }
            Victim::Member(index) => {
                let frozen = fleet.iter().filter(|member| member.is_frozen()).count();
                // The only server is not frozen for long: no other server could go on.
                let is_only_server = servers == 1 && index == 0;
                let blow = deck.deal(&mut random, frozen + usize::from(is_only_server));
                fleet[index].suffer(blow, Duration::from_millis(LEASE_MS * 3 / 2), LONG_FREEZE).await;
                format!("{blow:?} {}", if index < servers { "server" } else { "worker" })
            }
        };
        *dealt.entry(name).or_default() += 1;
        operators.look_after(12).await;
        for member in fleet.iter_mut().filter_map(|member| member.gave_up().then_some(member)) {
            let why = format!("{} ended by itself after blow {number}; see {}", member.name, setup.folder.display());
            // Who was just starting could not: its supervisor starts it again.
            let is_without_database = database_gone_at.is_some_and(|instant| member.was_starting_at(instant));
            slow_starts += u32::from(!is_without_database);
            assert!(is_without_database || database.is_some() && member.is_young() && slow_starts <= 2, "{why}");
            member.restart();
        }
    }
    fleet.iter_mut().for_each(Member::thaw);
    operators.finish().await;
    operators.judge().await;
    let [restarted, successors] = operators.begun_again();
    println!(
        "{} runs ({restarted} restarted, {successors} with a successor), {blows} blows: {dealt:?}",
        operators.runs.len()
    );
    assert!(blows < 30 || (restarted > 0 && successors > 0), "no run was restarted, or none got a successor");
    assert!(dealt.contains_key("Kill server") && dealt.contains_key("Kill worker"), "the blows missed: {dealt:?}");
    if blows >= 60 {
        let is_dealt = |blow: &str| dealt.keys().any(|name| name.starts_with(blow));
        let has_all = ["Freeze", "LongFreeze", "Terminate"].into_iter().all(is_dealt);
        assert!(has_all && (servers == 1 || is_dealt("Kill database")), "some blow was never dealt: {dealt:?}");
    }
    // Three in four of a whole deck.
    let kills: u32 = dealt.iter().filter(|(name, _)| name.starts_with("Kill")).map(|(_, count)| count).sum();
    assert!(blows < 30 || u64::from(kills) >= blows * 2 / 3, "only {kills} kills: {dealt:?}");

    drop(fleet);
    db_check(&setup.folder, &setup.store);
    let _ = std::fs::remove_dir_all(&setup.folder);
}

/// The servers' folder is where the payloads are.
fn db_check(folder: &Path, store: &str) {
    let check = std::process::Command::new(env!("CARGO_BIN_EXE_interlock"))
        .current_dir(folder)
        .args(["db", "check", "--store", store])
        .output()
        .unwrap();
    assert!(
        check.status.success(),
        "{}{}",
        String::from_utf8_lossy(&check.stdout),
        String::from_utf8_lossy(&check.stderr)
    );
}
