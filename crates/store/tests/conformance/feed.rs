//! Events: dense per run, dense per tenant, none missed and none twice.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_core::ids::{RunId, SessionId};
use interlock_core::time::Millis;
use interlock_store::{Seal, StoreUrl, Sweep};

use crate::harness::{NOW, StartOptions, TestDatabase, fresh, tasks, tenant_id};
use crate::swept_plans::count;

crate::on_every_store!(
    a_runs_events_are_dense,
    the_feed_misses_nothing_while_lanes_commit,
    the_feed_is_sealed_in_bounded_rounds,
    a_long_backlog_is_sealed_whole,
    old_runs_are_swept_whole,
    the_feed_goes_past_swept_runs,
);

async fn a_runs_events_are_dense(database: &TestDatabase) {
    let world = database.world().await;
    let mut run = world.start(&tasks(3), StartOptions::default()).await;
    world.finish(&mut run, SessionId(fresh())).await;
    let events = world.store.events(run.tenant, run.id, 0, 1_000).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=run.version).collect::<Vec<_>>());
    assert!(events[0].event.as_str().contains("session.created"), "{:?}", events[0]);
    // From the middle, and a page at a time.
    let after = world.store.events(run.tenant, run.id, 3, 2).await.unwrap();
    assert_eq!(after.iter().map(|event| event.seq).collect::<Vec<_>>(), [4, 5]);
    assert_eq!(after[0], events[3]);
}

async fn the_feed_misses_nothing_while_lanes_commit(database: &TestDatabase) {
    let world = database.world().await;
    let stop = Arc::new(AtomicBool::new(false));
    let sealer = tokio::spawn({
        let (world, stop) = (world.clone(), Arc::clone(&stop));
        async move {
            while !stop.load(Ordering::Relaxed) {
                world.store.write(Seal { now: NOW, limit: 3 }).await.unwrap();
            }
        }
    });
    let plan = tasks(3);
    let workers = (0..12).map(|_| {
        let (world, plan) = (world.clone(), Arc::clone(&plan));
        tokio::spawn(async move {
            let mut done = Vec::new();
            for _ in 0..8 {
                let mut run = world.start(&plan, StartOptions::default()).await;
                world.finish(&mut run, SessionId(fresh())).await;
                done.push((run.id, run.version));
            }
            done
        })
    });
    let mut expected: HashMap<RunId, u64> = HashMap::new();
    for worker in futures::future::join_all(workers).await {
        expected.extend(worker.unwrap());
    }
    stop.store(true, Ordering::Relaxed);
    sealer.await.unwrap();
    while world.store.write(Seal { now: NOW, limit: 1_000 }).await.unwrap() != 0 {}

    let mut seen: HashMap<RunId, u64> = HashMap::new();
    let mut cursor = 0;
    loop {
        let events = world.store.tenant_events(world.tenant, cursor, 7).await.unwrap().events;
        if events.is_empty() {
            break;
        }
        for event in events {
            assert_eq!(event.cursor, cursor + 1, "cursors are dense");
            cursor = event.cursor;
            let seq = seen.entry(event.run).or_default();
            assert_eq!(event.seq, *seq + 1, "a run's events come in order");
            *seq = event.seq;
        }
    }
    assert_eq!(seen, expected);
    assert!(world.store.tenant_events(tenant_id(2), 0, 10).await.unwrap().events.is_empty());
}

/// Two servers work on the same runs in turn, and the second one's clock is an hour behind: a round that takes the groups
/// with the oldest instants would show what it did before what that was decided on.
pub async fn the_feed_is_sealed_in_bounded_rounds(database: &TestDatabase) {
    if matches!(database.url, StoreUrl::SqliteMemory(_)) {
        // Only here have two servers one SQLite, and no rounds are cut there.
        return;
    }
    let world = database.world().await;
    let stores = [world.store.clone(), database.second(&world.store).await];
    let behind = NOW - Millis::from_hours(1);
    let session = SessionId(fresh());
    let mut versions: HashMap<RunId, u64> = HashMap::new();
    for _ in 0..6 {
        let mut run = world.start(&tasks(6), StartOptions { claim: Some(session), ..StartOptions::default() }).await;
        for turn in 0..6 {
            let at = if turn % 2 == 0 { behind } else { NOW };
            let change = crate::harness::completion(&run, at);
            run.apply(&stores[usize::from(turn % 2 == 0)].submit(change).await.unwrap());
        }
        versions.insert(run.id, run.version);
    }
    let mut rounds = 0;
    while world.store.write(Seal { now: NOW, limit: 5 }).await.unwrap() != 0 {
        rounds += 1;
    }
    // Each of the 42 changes was a group of its own.
    assert!(rounds >= 42 / 5, "sealed in {rounds} rounds");
    let mut seen: HashMap<RunId, u64> = HashMap::new();
    for event in world.store.tenant_events(world.tenant, 0, 10_000).await.unwrap().events {
        let seq = seen.entry(event.run).or_default();
        assert_eq!(event.seq, *seq + 1, "a run's events come in order");
        *seq = event.seq;
    }
    assert_eq!(seen, versions);
}

/// More groups than may be left behind unread where they are empty: these are not.
async fn a_long_backlog_is_sealed_whole(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let mut events = 0;
    for _ in 0..300 {
        events += world.start(&plan, StartOptions::default()).await.version;
    }
    let mut sealed = 0;
    loop {
        match world.store.write(Seal { now: NOW, limit: 8 }).await.unwrap() {
            0 => break,
            more => sealed += more,
        }
    }
    assert_eq!(sealed, events);
    assert_eq!(world.store.last_cursor(world.tenant).await.unwrap(), events);
}

/// Lanes of sessions, of output and of the sealer itself have no other groups: reading them again for each seal would cost more with
/// every one.
async fn groups_without_events_are_left_behind(database: &TestDatabase) {
    let world = database.world().await;
    let mut run = world.start(&tasks(1), StartOptions::default()).await;
    for _ in 0..600 {
        world.store.write(Seal { now: NOW, limit: 8 }).await.unwrap();
    }
    // What is committed behind them is sealed.
    world.finish(&mut run, SessionId(fresh())).await;
    while world.store.write(Seal { now: NOW, limit: 8 }).await.unwrap() != 0 {}
    let page = world.store.tenant_events(world.tenant, 0, 100).await.unwrap();
    assert_eq!(page.events.iter().map(|event| event.seq).collect::<Vec<_>>(), (1..=run.version).collect::<Vec<_>>());
    world.store.close().await;
    let read_again = "commit_groups g LEFT JOIN feed_positions p ON p.lane_id = g.lane_id
                      WHERE length(g.entries) = 0 AND g.group_no > coalesce(p.group_no, 0)";
    let count = count(database, read_again).await;
    assert!(count < 300, "{count} of some 600 are read again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_without_events_are_left_behind_on_sqlite() {
    let database = TestDatabase::file();
    groups_without_events_are_left_behind(&database).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_without_events_are_left_behind_on_postgres() {
    let database = TestDatabase::postgres().await;
    groups_without_events_are_left_behind(&database).await;
}

async fn old_runs_are_swept_whole(database: &TestDatabase) {
    let world = database.world().await;
    let labels = vec![("repo".to_owned(), "x".to_owned())];
    let mut old = world.start(&tasks(2), StartOptions { labels, ..StartOptions::default() }).await;
    let live = world.start(&tasks(2), StartOptions::default()).await;
    world.finish(&mut old, SessionId(fresh())).await;
    world.store.write(Seal { now: NOW, limit: 1_000 }).await.unwrap();
    let sweep = |days: u64| Sweep::new(NOW + Millis::from_hours(24 * days));
    world.store.write(sweep(89)).await.unwrap();
    assert_eq!(world.load(&old).await, old);
    world.store.write(sweep(91)).await.unwrap();
    assert!(world.store.load_runs(&[(old.tenant, old.id)]).await.unwrap().is_empty());
    assert!(world.store.events(old.tenant, old.id, 0, 10).await.unwrap().is_empty());
    assert_eq!(world.load(&live).await, live);
    assert_eq!(world.findings().await, []);
}

async fn the_feed_goes_past_swept_runs(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(2);
    for _ in 0..4 {
        let mut run = world.start(&plan, StartOptions::default()).await;
        world.finish(&mut run, SessionId(fresh())).await;
        world.store.write(Seal { now: NOW, limit: 1_000 }).await.unwrap();
    }
    let live = world.start(&plan, StartOptions::default()).await;
    world.store.write(Seal { now: NOW, limit: 1_000 }).await.unwrap();
    let last = world.store.last_cursor(world.tenant).await.unwrap();
    let later = NOW + Millis::from_hours(24);
    let sweep = Sweep { runs_kept: Some(Millis::from_hours(1)), ..Sweep::new(later) };
    world.store.write(sweep).await.unwrap();

    // Pages that hold nothing but swept events come first, and the cursor moves past each of them.
    let (mut cursor, mut empty, mut seen) = (0, 0, Vec::new());
    while cursor < last {
        let page = world.store.tenant_events(world.tenant, cursor, 5).await.unwrap();
        assert!(page.cursor > cursor, "stuck at {cursor} of {last}");
        empty += u32::from(page.events.is_empty());
        cursor = page.cursor;
        seen.extend(page.events);
    }
    assert!(empty > 1);
    assert_eq!(cursor, last);
    let of_live: Vec<_> = seen.iter().map(|event| (event.run, event.seq)).collect();
    assert_eq!(of_live, (1..=live.version).map(|seq| (live.id, seq)).collect::<Vec<_>>());
    let end = world.store.tenant_events(world.tenant, last, 5).await.unwrap();
    assert_eq!((end.events.len(), end.cursor), (0, last));
}
