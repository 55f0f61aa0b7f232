//! What is swept, and what must outlive its time.

use interlock_core::decide::Command;
use interlock_core::ids::{RunId, SessionId};
use interlock_core::run::{Lineage, Run};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{StoreSignal, Sweep};

use crate::guards::{idempotency, signal};
use crate::harness::{NOW, StartOptions, TestDatabase, World, command, completion, fresh, tasks};

crate::on_every_store!(
    a_key_stays_as_long_as_its_run,
    runs_that_continue_one_another_are_swept_together,
    a_chain_is_kept_by_the_run_that_ended_last,
    what_has_a_time_of_its_own_goes_where_runs_stay_for_ever
);

/// Completes the only step of a run, so many days later.
async fn finish_after(world: &World, run: &mut Run, days: u64) {
    let at = NOW + Millis::from_hours(24 * days);
    let claim = command(run, Command::Claim { session: SessionId(fresh()) }, at);
    world.apply(run, claim).await;
    let done = completion(run, at);
    world.apply(run, done).await;
}

async fn a_key_stays_as_long_as_its_run(database: &TestDatabase) {
    let world = database.world().await;
    let wanted = StartOptions { idempotency: Some(idempotency("k")), ..StartOptions::default() };
    let mut run = world.start(&tasks(1), wanted).await;
    let kept = async |days: u64| {
        world.store.write(Sweep::new(NOW + Millis::from_hours(24 * days))).await.unwrap();
        world.store.idempotency(world.tenant, "cli", "k").await.unwrap().is_some()
    };
    assert!(kept(200).await, "its run lives");
    finish_after(&world, &mut run, 200).await;
    assert!(kept(201).await, "its run is kept");
    assert!(!kept(291).await);
}

async fn runs_that_continue_one_another_are_swept_together(database: &TestDatabase) {
    let world = database.world().await;
    let mut first = world.start(&tasks(1), StartOptions::default()).await;
    finish_after(&world, &mut first, 0).await;
    let lineage = Lineage { root_run_id: first.id, resumed_from: first.id, resume_count: 1 };
    let second = world.start(&tasks(1), StartOptions { lineage: Some(lineage), ..StartOptions::default() }).await;
    let kept = async |days: u64| {
        world.store.write(Sweep::new(NOW + Millis::from_hours(24 * days))).await.unwrap();
        world.store.load_runs(&[(world.tenant, first.id), (world.tenant, second.id)]).await.unwrap().len()
    };
    assert_eq!(kept(91).await, 2, "a resume of the second looks for receipts of the first");
    finish_after(&world, &mut second.clone(), 91).await;
    assert_eq!(kept(92).await, 2);
    assert_eq!(kept(182).await, 0);
}

/// Ids are drawn by servers whose clocks differ: the last run of a chain need not have the largest.
async fn a_chain_is_kept_by_the_run_that_ended_last(database: &TestDatabase) {
    let world = database.world().await;
    let mut first = world.start(&tasks(1), StartOptions::default()).await;
    finish_after(&world, &mut first, 0).await;
    let mut ids = [RunId(fresh()), RunId(fresh())];
    ids.sort_unstable();
    let lineage = |from, resume_count| Some(Lineage { root_run_id: first.id, resumed_from: from, resume_count });
    let next =
        |id, from, count| StartOptions { id: Some(id), lineage: lineage(from, count), ..StartOptions::default() };
    let mut second = world.start(&tasks(1), next(ids[1], first.id, 1)).await;
    finish_after(&world, &mut second, 0).await;
    let third = world.start(&tasks(1), next(ids[0], second.id, 2)).await;
    world.store.write(Sweep::new(NOW + Millis::from_hours(24 * 91))).await.unwrap();
    let kept = [first.id, second.id, third.id].map(|run| (world.tenant, run));
    assert_eq!(world.store.load_runs(&kept).await.unwrap().len(), 3);
}

async fn what_has_a_time_of_its_own_goes_where_runs_stay_for_ever(database: &TestDatabase) {
    let world = database.world().await;
    let wanted = StartOptions { idempotency: Some(idempotency("k")), ..StartOptions::default() };
    let mut run = world.start(&tasks(1), wanted).await;
    finish_after(&world, &mut run, 0).await;
    world.store.write(StoreSignal(signal(&world, "k"))).await.unwrap();
    let now = NOW + Millis::from_hours(24 * 365);
    let sweep = Sweep { runs_kept: None, ..Sweep::new(now) };
    let removed = world.store.write(sweep).await.unwrap();
    assert!(removed >= 1, "the signal has expired");
    assert_eq!(world.store.pending_signals(world.tenant, "run.requested", "k", Timestamp(0), 10).await.unwrap(), []);
    assert_eq!(world.load(&run).await.state, run.state);
    assert!(world.store.idempotency(world.tenant, "cli", "k").await.unwrap().is_some());
    assert_eq!(world.store.events(world.tenant, run.id, 0, 10).await.unwrap().len() as u64, run.version);
}
