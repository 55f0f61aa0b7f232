//! Names of signals: under one name one signal is taken, and a name of one scope is in no other's way.

use interlock_core::ids::{RunId, SignalId};
use interlock_core::json::Hash;
use interlock_store::{PutTenant, SignalIdentity, SignalRow, SignalScope, SignalStored, SourceId, StoreSignal, Tenant};

use crate::guards::signal;
use crate::harness::{NOW, TestDatabase, World, fresh, tenant_id};
use crate::opening::tamper;

crate::on_every_store!(a_name_stands_for_one_signal_of_its_scope, of_two_signals_under_one_name_at_once_one_is_taken);

fn named(world: &World, scope: SignalScope, name: &str, says: &str) -> SignalRow {
    let source = SourceId { scope, name: name.to_owned() };
    let identity = SignalIdentity { source, fingerprint: Hash::of(says.as_bytes()) };
    SignalRow { source_id: Some(identity), ..signal(world, "k") }
}

async fn a_name_stands_for_one_signal_of_its_scope(database: &TestDatabase) {
    let world = database.world().await;
    let second = World { store: world.store.clone(), tenant: tenant_id(2) };
    second.store.write(PutTenant(Tenant::new(second.tenant, "two", NOW))).await.unwrap();
    let scopes = [
        SignalScope::Tenant,
        SignalScope::Request,
        SignalScope::Message,
        SignalScope::Run(RunId(fresh())),
        SignalScope::Run(RunId(fresh())),
    ];
    for world in [&world, &second] {
        for scope in &scopes {
            for (says, answer) in [
                ("one", SignalStored::Stored),
                ("one", SignalStored::Duplicate),
                ("another", SignalStored::NameTaken),
                ("one", SignalStored::Duplicate),
            ] {
                let row = named(world, scope.clone(), "m-1", says);
                let stored = world.store.write(StoreSignal(row)).await.unwrap();
                assert_eq!(stored, answer, "{says} of {scope:?}");
            }
        }
        let pending = world.store.pending_signals(world.tenant, "run.requested", "k", NOW, 20).await.unwrap();
        assert_eq!(pending.len(), scopes.len());
    }
    // Without a name each is its own.
    for _ in 0..2 {
        assert_eq!(world.store.write(StoreSignal(signal(&world, "k"))).await.unwrap(), SignalStored::Stored);
    }
}

async fn of_two_signals_under_one_name_at_once_one_is_taken(database: &TestDatabase) {
    let world = database.world().await;
    let second = database.second(&world.store).await;
    for round in 0..20 {
        for (other, answer) in [("one", SignalStored::Duplicate), ("another", SignalStored::NameTaken)] {
            let name = format!("{round}-{other}");
            let row = |says: &str| StoreSignal(named(&world, SignalScope::Tenant, &name, says));
            let (here, there) = futures::join!(world.store.write(row("one")), second.write(row(other)));
            let answers = [here.unwrap(), there.unwrap()];
            assert!(answers.contains(&SignalStored::Stored) && answers.contains(&answer), "{name}: {answers:?}");
        }
    }
    let pending = world.store.pending_signals(world.tenant, "run.requested", "k", NOW, 100).await.unwrap();
    assert_eq!(pending.len(), 40);
}

/// Leaves the signals as servers of an earlier release have stored them.
const EARLIER: &str = "UPDATE signals SET source_id = source_name, source_scope = NULL, source_name = NULL,
    fingerprint = NULL";

/// The same signal, as a repeat of its request brings it.
fn again(row: &SignalRow) -> StoreSignal {
    StoreSignal(SignalRow { id: SignalId(fresh()), ..row.clone() })
}

async fn a_name_of_an_earlier_release_still_counts(database: &TestDatabase) {
    let world = database.world().await;
    let to_run = || {
        let run = RunId(fresh());
        SignalRow { run: Some(run), ..named(&world, SignalScope::Run(run), "m-2", "one") }
    };
    let (by_key, for_run, for_other_run) = (named(&world, SignalScope::Tenant, "m-1", "one"), to_run(), to_run());
    for row in [&by_key, &for_run] {
        assert_eq!(world.store.write(StoreSignal(row.clone())).await.unwrap(), SignalStored::Stored);
    }
    world.store.close().await;
    tamper(database, EARLIER).await;
    let store = database.open().await;
    for row in [&by_key, &for_run] {
        assert_eq!(store.write(again(row)).await.unwrap(), SignalStored::Duplicate, "it came before the upgrade");
    }
    // What stands under the name may be for another run: it is in nobody's way.
    let under_other_key = SignalRow { key: "other".into(), ..by_key };
    for row in [for_other_run, under_other_key] {
        assert_eq!(store.write(again(&row)).await.unwrap(), SignalStored::Stored);
        assert_eq!(store.write(again(&row)).await.unwrap(), SignalStored::Duplicate);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_an_earlier_release_still_counts_in_a_file() {
    a_name_of_an_earlier_release_still_counts(&TestDatabase::file()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_of_an_earlier_release_still_counts_on_postgres() {
    a_name_of_an_earlier_release_still_counts(&TestDatabase::postgres().await).await;
}
