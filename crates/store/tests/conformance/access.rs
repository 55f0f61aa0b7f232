//! The handles of the server's routes: one tenant's rows, and no other's.

use interlock_core::ids::{KeyId, SessionId, TenantId};
use interlock_core::json::Hash;
use interlock_core::run::why::Heartbeat;
use interlock_core::state::WorkerState;
use interlock_core::tenant::identity::{Role, Roles};
use interlock_core::time::Millis;
use interlock_store::{
    AddKey, Changed, KeyRow, PutTenant, Refusal, RegisterSession, RevokeKey, SessionRow, Stored, SubmitError, Tenant,
};

use crate::harness::{NOW, StartOptions, TestDatabase, fresh, tasks, tenant_id};

crate::on_every_store!(
    a_tenants_handle_writes_to_no_other_tenant,
    a_tenants_handle_reads_no_other_tenant,
    workers_that_serve_all_tenants_are_seen_by_each,
    the_first_key_is_added_once,
);

fn key(tenant: TenantId, lookup: &str) -> KeyRow {
    KeyRow {
        tenant,
        id: KeyId(fresh()),
        lookup: lookup.to_owned(),
        hash: Hash::of(lookup.as_bytes()),
        name: lookup.to_owned(),
        client: lookup.to_owned(),
        owner: None,
        roles: Roles::NONE.with(Role::Admin),
        workspace: None,
        installation: false,
        requests_per_min: None,
        created_at: NOW,
        created_by: None,
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    }
}

fn session(tenant: Option<TenantId>) -> SessionRow {
    SessionRow {
        id: SessionId(fresh()),
        tenant,
        worker: "w".into(),
        build_id: None,
        queues: vec!["default".into()],
        slots: 1,
        state: WorkerState::Online,
        registered_at: NOW,
        lease_expires_at: NOW + Millis(20_000),
        heartbeat_at: NOW,
        tasks: None,
        capabilities: None,
        identity: None,
        terms: None,
        unlisted: vec![],
        fault: None,
        lost: None,
        maintenance: None,
        labels: std::collections::BTreeMap::new(),
    }
}

async fn a_tenants_handle_writes_to_no_other_tenant(database: &TestDatabase) {
    let world = database.world().await;
    let other = tenant_id(2);
    world.store.write(PutTenant(Tenant::new(other, "two", NOW))).await.unwrap();
    let (own, foreign) = (world.store.for_tenant(world.tenant), world.store.for_tenant(other));
    let row = key(world.tenant, "first");
    let refused = foreign.write(AddKey(row.clone())).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Refused(Refusal::UnknownTenant)), "{refused}");
    assert_eq!(own.write(AddKey(row.clone())).await.unwrap(), Stored::Stored);
    assert_eq!(own.write(AddKey(row.clone())).await.unwrap(), Stored::Duplicate);

    let revoke = RevokeKey { tenant: world.tenant, key: row.id, at: NOW };
    assert!(foreign.write(revoke).await.is_err());
    assert_eq!(own.key(row.id).await.unwrap().unwrap().revoked_at, None, "nothing was written");
    assert_eq!(own.write(revoke).await.unwrap(), Changed::Done);
    assert_eq!(own.key(row.id).await.unwrap().unwrap().revoked_at, Some(NOW));
    let unknown = RevokeKey { key: KeyId(fresh()), ..revoke };
    assert_eq!(own.write(unknown).await.unwrap(), Changed::Gone);
}

async fn a_tenants_handle_reads_no_other_tenant(database: &TestDatabase) {
    let world = database.world().await;
    let other = tenant_id(2);
    world.store.write(PutTenant(Tenant::new(other, "two", NOW))).await.unwrap();
    let run = world.start(&tasks(1), StartOptions::default()).await;
    let row = key(world.tenant, "first");
    world.store.write(AddKey(row.clone())).await.unwrap();
    for (tenant, sees) in [(world.tenant, true), (other, false)] {
        let store = world.store.for_tenant(tenant);
        assert_eq!(store.tenant().await.unwrap().map(|tenant| tenant.id), Some(tenant));
        assert_eq!(store.load_run(run.id).await.unwrap().is_some(), sees);
        assert_eq!(store.run_overview(run.id).await.unwrap().is_some(), sees);
        assert_eq!(store.key(row.id).await.unwrap().is_some(), sees);
        assert_eq!(store.keys(None, 10).await.unwrap().is_empty(), !sees);
    }
    // Whose key it is, is what a sign-in finds out.
    let found = world.store.sign_in().find_keys("first").await.unwrap();
    assert_eq!(found.iter().map(|row| row.tenant).collect::<Vec<_>>(), [world.tenant]);
}

async fn workers_that_serve_all_tenants_are_seen_by_each(database: &TestDatabase) {
    let world = database.world().await;
    let (own, everybodys, others) = (session(Some(world.tenant)), session(None), session(Some(tenant_id(2))));
    for row in [&own, &everybodys, &others] {
        world.store.write(RegisterSession(row.clone())).await.unwrap();
    }
    let store = world.store.for_tenant(world.tenant);
    let mut seen: Vec<_> = store.worker_sessions().await.unwrap().into_iter().map(|row| row.id).collect();
    let mut wanted = vec![own.id, everybodys.id];
    seen.sort();
    wanted.sort();
    assert_eq!(seen, wanted);

    let mut run = world.start(&tasks(1), StartOptions::default()).await;
    world.claim(&mut run, everybodys.id).await;
    assert_eq!(store.heartbeat(run.id).await.unwrap(), Some(Heartbeat::At(NOW)), "row security would hide the session");
    assert_eq!(world.store.for_tenant(tenant_id(2)).heartbeat(run.id).await.unwrap(), None);
}

async fn the_first_key_is_added_once(database: &TestDatabase) {
    let world = database.world().await;
    let installation = world.store.installation();
    assert!(!installation.has_had_a_key().await.unwrap());
    assert!(installation.add_first_key(key(world.tenant, "first"), None).await.unwrap());
    assert!(installation.has_had_a_key().await.unwrap());
    assert!(!installation.add_first_key(key(world.tenant, "second"), None).await.unwrap());
    assert!(world.store.sign_in().find_keys("second").await.unwrap().is_empty(), "it was not stored");
    installation.keep_once("color", "red".into()).await.unwrap();
    installation.keep_once("color", "blue".into()).await.unwrap();
    assert_eq!(installation.kept("color").await.unwrap().as_deref(), Some("red"));
}
