//! References to payloads: an object goes with the last of them, and no new one is given while it goes.

use interlock_core::ids::{RunId, SignalId};
use interlock_core::json::Hash;
use interlock_core::time::Millis;
use interlock_store::{
    ForgetPayload, KeepPayload, PayloadKept, PayloadOwner, PayloadReleased, PayloadRow, ReleasePayload, Store, Write,
};

use crate::harness::{NOW, StartOptions, TestDatabase, World, fresh, tasks, tenant_id};

crate::on_every_store!(an_object_goes_with_its_last_owner, the_mark_of_a_store_stays);

async fn ask<W: Write>(store: &Store, write: W) -> W::Answer {
    store.write(write).await.unwrap()
}

async fn an_object_goes_with_its_last_owner(database: &TestDatabase) {
    let world = database.world().await;
    let World { store, tenant, .. } = &world;
    let (sha256, other_hash) = (Hash::of(b"payload"), Hash::of(b"other"));
    let run = world.start(&tasks(1), StartOptions::default()).await.id;
    let uncommitted = RunId(fresh());
    let row = |owner: PayloadOwner, sha256| PayloadRow { tenant: *tenant, owner, sha256 };
    let keep = |owner, sha256, at| KeepPayload { row: row(owner, sha256), bytes: 7, at };
    for owner in [run.into(), uncommitted.into(), SignalId(fresh()).into()] {
        assert_eq!(ask(store, keep(owner, sha256, NOW)).await, PayloadKept::Kept);
        assert_eq!(ask(store, keep(owner, sha256, NOW)).await, PayloadKept::Kept, "again is the same");
    }
    ask(store, keep(uncommitted.into(), other_hash, NOW + Millis(5))).await;
    assert_eq!(store.payload_bytes(*tenant, run, sha256).await.unwrap(), Some(7));
    assert_eq!(store.payload_bytes(*tenant, run, other_hash).await.unwrap(), None);
    assert_eq!(store.payload_bytes(tenant_id(2), run, sha256).await.unwrap(), None);

    // Those without an owner, but for the one that may be on its way.
    let before = NOW + Millis(1);
    let unowned = store.payloads_unowned(before, 10).await.unwrap();
    assert_eq!(unowned.len(), 2, "{unowned:?}");
    assert!(unowned.contains(&row(uncommitted.into(), sha256)), "{unowned:?}");
    for row in unowned {
        assert_eq!(
            ask(store, ReleasePayload { row, before }).await,
            PayloadReleased::Shared,
            "the run still refers to it"
        );
    }
    assert!(store.payloads_unowned(before, 10).await.unwrap().is_empty());

    let last = row(uncommitted.into(), other_hash);
    let release = |before| ReleasePayload { row: last, before };
    assert_eq!(ask(store, release(before)).await, PayloadReleased::KeptAgain, "it was kept since");
    let before = NOW + Millis(10);
    assert_eq!(ask(store, release(before)).await, PayloadReleased::Last);
    assert_eq!(ask(store, keep(run.into(), other_hash, NOW)).await, PayloadKept::BeingRemoved, "it is going");
    assert_eq!(store.payloads_unowned(before, 10).await.unwrap(), [last], "a sweep that broke off goes on");
    ask(store, ForgetPayload { tenant: *tenant, sha256: other_hash }).await;
    assert_eq!(ask(store, keep(run.into(), other_hash, NOW)).await, PayloadKept::Kept);
    world.store.close().await;
}

async fn the_mark_of_a_store_stays(database: &TestDatabase) {
    let World { store, .. } = database.world().await;
    let mark = store.payload_mark().await.unwrap();
    assert_eq!(mark.len(), 32);
    // A database in memory lives as long as a store has it open.
    let again = if matches!(database.url, interlock_store::StoreUrl::Sqlite(_)) {
        store.close().await;
        database.open().await
    } else {
        database.open().await
    };
    assert_eq!(again.payload_mark().await.unwrap(), mark);
    again.close().await;
}
