//! What a lane promises: order per run, one commit for many, and each change applied once, whatever gets lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use interlock_core::ids::SessionId;
use interlock_core::time::Millis;
use interlock_store::{CommitFault, Faults, Mode, Options, PutTenant, Seal, Store, SubmitError, Tenant};

use crate::harness::{NOW, StartOptions, TestDatabase, World, completion, fresh, options, start_set, tasks, tenant_id};

crate::on_every_store!(
    sets_of_one_run_keep_their_order,
    sets_go_either_way_and_the_feed_tells_them_as_they_were_committed,
    many_submissions_share_a_commit,
    a_closed_store_says_so
);

async fn sets_of_one_run_keep_their_order(database: &TestDatabase) {
    let world = database.world().await;
    let session = SessionId(fresh());
    let (mut run, start) =
        start_set(world.tenant, &tasks(4), StartOptions { claim: Some(session), ..StartOptions::default() });
    // Decided one upon the other in memory, submitted at once: each expects what the one before it leaves.
    let mut sets = vec![start.clone()];
    run.apply(&start);
    while !run.state.is_terminal() {
        let change = completion(&run, NOW);
        run.apply(&change);
        sets.push(change);
    }
    let answers = futures::future::join_all(sets.into_iter().map(|set| world.store.submit(set))).await;
    for answer in answers {
        answer.unwrap();
    }
    assert_eq!(world.load(&run).await, run);
}

/// Also runs that change their way, and runs that were started one after the other on different ways.
async fn sets_go_either_way_and_the_feed_tells_them_as_they_were_committed(database: &TestDatabase) {
    let world = database.world().await;
    let session = SessionId(fresh());
    let mut at = NOW;
    let mut started = Vec::new();
    let mut past = false;
    for _ in 0..20 {
        let wanted = StartOptions { claim: Some(session), at: Some(at), ..StartOptions::default() };
        let (mut run, mut change) = start_set(world.tenant, &tasks(2), wanted);
        started.push(run.id);
        loop {
            let store = &world.store;
            let set = if past { store.submit_priority(change).await } else { store.submit(change).await };
            run.apply(&set.unwrap());
            past = !past;
            at = at + Millis(1);
            if run.state.is_terminal() {
                break;
            }
            change = completion(&run, at);
        }
        assert_eq!(world.load(&run).await, run);
    }
    while world.store.write(Seal { now: at, limit: 1_000 }).await.unwrap() != 0 {}
    let events = world.store.tenant_events(world.tenant, 0, 1_000).await.unwrap().events;
    let mut told: Vec<_> = events.iter().map(|event| event.run).collect();
    told.dedup();
    assert_eq!(told, started, "each run ended before the next one began");
}

async fn many_submissions_share_a_commit(database: &TestDatabase) {
    let world = database.world().await;
    let before = world.store.stats().await.unwrap();
    let starts: Vec<_> = (0..400).map(|_| start_set(world.tenant, &tasks(1), StartOptions::default()).1).collect();
    let answers = futures::future::join_all(starts.into_iter().map(|set| world.store.submit(set))).await;
    assert!(answers.into_iter().all(|answer| answer.is_ok()));
    let after = world.store.stats().await.unwrap();
    assert_eq!(after.committed - before.committed, 400);
    assert!(after.groups - before.groups < 100, "{} groups", after.groups - before.groups);
    assert_eq!((after.live_runs, after.queued), (400, 0));
}

async fn a_closed_store_says_so(database: &TestDatabase) {
    let world = database.world().await;
    let store = world.store.clone();
    let waiting: Vec<_> = (0..50).map(|_| start_set(world.tenant, &tasks(1), StartOptions::default()).1).collect();
    let submissions: Vec<_> = waiting
        .into_iter()
        .map(|set| {
            let store = store.clone();
            tokio::spawn(async move { store.submit(set).await })
        })
        .collect();
    world.store.close().await;
    for submission in submissions {
        // Committed before the end, or told that it was too late; never left without an answer.
        let answer = submission.await.unwrap();
        assert!(matches!(answer, Ok(_) | Err(SubmitError::Closed)));
    }
    let (_, late) = start_set(tenant_id(1), &tasks(1), StartOptions::default());
    assert!(matches!(store.submit(late).await, Err(SubmitError::Closed)));
}

/// Loses every second commit, in turn before and after it has happened.
#[derive(Default)]
struct Lossy {
    calls: AtomicU64,
    lost_before: AtomicU64,
    lost_after: AtomicU64,
}

impl Faults for Lossy {
    fn before_commit(&self, _: u64) -> BoxFuture<'static, CommitFault> {
        let lost = self.calls.fetch_add(1, Ordering::Relaxed) % 3 == 1;
        self.lost_before.fetch_add(u64::from(lost), Ordering::Relaxed);
        async move {
            tokio::time::sleep(Duration::from_millis(3)).await;
            if lost { CommitFault::Lost } else { CommitFault::None }
        }
        .boxed()
    }

    fn after_commit(&self, _: u64) -> BoxFuture<'static, CommitFault> {
        let lost = self.calls.fetch_add(1, Ordering::Relaxed) % 5 == 2;
        self.lost_after.fetch_add(u64::from(lost), Ordering::Relaxed);
        std::future::ready(if lost { CommitFault::Lost } else { CommitFault::None }).boxed()
    }

    fn before_read(&self) -> BoxFuture<'static, ()> {
        tokio::time::sleep(Duration::from_millis(1)).boxed()
    }
}

async fn inline(database: &TestDatabase, faults: Arc<dyn Faults>) -> World {
    let options = Options { mode: Mode::Inline(faults), ..options() };
    let store = Store::open(&database.url, options).await.unwrap();
    let tenant = tenant_id(1);
    store.write(PutTenant(Tenant::new(tenant, "one", NOW))).await.unwrap();
    World { store, tenant }
}

/// Time stands still but for the sleeps, and everything runs on this thread.
#[tokio::test(start_paused = true)]
async fn commits_with_unknown_outcome_are_applied_once() {
    let database = TestDatabase::memory();
    let faults = Arc::new(Lossy::default());
    let world = inline(&database, Arc::clone(&faults) as _).await;
    let workers = (0..10).map(|_| async {
        let session = SessionId(fresh());
        for _ in 0..5 {
            let mut run = world.start(&tasks(3), StartOptions::default()).await;
            world.finish(&mut run, session).await;
            assert_eq!(world.load(&run).await, run);
        }
    });
    futures::future::join_all(workers).await;
    assert_eq!(world.findings().await, []);
    let (before, after) = (faults.lost_before.load(Ordering::Relaxed), faults.lost_after.load(Ordering::Relaxed));
    assert!(before > 5 && after > 5, "{before} {after}");
}

/// The second group of each lane is slow; the first one of the ordinary lane is the tenant itself.
struct SlowSecondGroup;

impl Faults for SlowSecondGroup {
    fn before_commit(&self, group: u64) -> BoxFuture<'static, CommitFault> {
        async move {
            if group == 2 {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            CommitFault::None
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_priority_lane_in_memory_does_not_wait_for_the_other_lane() {
    for priority_lane in [true, false] {
        let database = TestDatabase::memory();
        let options = Options { mode: Mode::Inline(Arc::new(SlowSecondGroup)), priority_lane, ..options() };
        let store = Store::open(&database.url, options).await.unwrap();
        store.write(PutTenant(Tenant::new(tenant_id(1), "one", NOW))).await.unwrap();
        let start = || start_set(tenant_id(1), &tasks(1), StartOptions::default()).1;
        let began = tokio::time::Instant::now();
        let ordinary = async {
            store.submit(start()).await.unwrap();
            began.elapsed()
        };
        let quiet = async {
            store.submit_priority(start()).await.unwrap();
            began.elapsed()
        };
        let (ordinary, quiet) = futures::future::join(ordinary, quiet).await;
        assert_eq!(quiet < ordinary, priority_lane, "{quiet:?} beside {ordinary:?}");
        assert_eq!((store.sets_committed(), store.priority_sets_committed()), (2, u64::from(priority_lane)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_store_leaves_what_it_had_committed() {
    let database = TestDatabase::memory();
    let world = inline(&database, Arc::new(Lossy::default())).await;
    let run = world.start(&tasks(2), StartOptions::default()).await;
    let (_, unanswered) = start_set(world.tenant, &tasks(1), StartOptions::default());
    let submission = tokio::spawn({
        let store = world.store.clone();
        async move { store.submit(unanswered).await }
    });
    tokio::task::yield_now().await;
    world.store.kill();
    assert!(matches!(submission.await.unwrap(), Err(SubmitError::Closed)));
    let again = inline(&database, Arc::new(Lossy::default())).await;
    assert_eq!(again.load(&run).await, run);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_an_answer() {
    let database = TestDatabase::memory();
    let options = Options { mode: Mode::Inline(Arc::new(Lossy::default())), queue_max: 3, ..options() };
    let store = Store::open(&database.url, options).await.unwrap();
    store.write(PutTenant(Tenant::new(tenant_id(1), "one", NOW))).await.unwrap();
    let sets = (0..20).map(|_| store.try_submit(start_set(tenant_id(1), &tasks(1), StartOptions::default()).1));
    let answers = futures::future::join_all(sets).await;
    let busy = answers.iter().filter(|answer| matches!(answer, Err(SubmitError::Busy))).count();
    assert_eq!(busy, 17);
}
