//! Workflows and their versions.

use interlock_core::json::{Hash, Json};
use interlock_core::time::Timestamp;
use interlock_store::{Changed, PutWorkflow, SetWorkflowDisabled, WorkflowVersionRow};

use crate::harness::{NOW, TestDatabase, World, tenant_id};

fn version(name: &str, number: u32) -> WorkflowVersionRow {
    let source = format!("name: {name} # {number}");
    WorkflowVersionRow {
        name: name.into(),
        version: number,
        source_hash: Hash::of(source.as_bytes()),
        source,
        definition: Json::trusted(format!("{{\"name\":\"{name}\"}}")),
        plan_hash: Hash::of(&number.to_be_bytes()),
        created_at: Timestamp(NOW.0 + i64::from(number)),
        created_by: Some("ada".into()),
    }
}

async fn put(world: &World, row: &WorkflowVersionRow) -> Changed {
    let op = PutWorkflow { tenant: world.tenant, version: row.clone() };
    world.store.write(op).await.unwrap()
}

async fn versions_follow_each_other_and_never_change(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant) = (&world.store, world.tenant);
    assert_eq!(store.workflow(tenant, "deploy").await.unwrap(), None);
    assert_eq!(put(&world, &version("deploy", 2)).await, Changed::Gone, "there is no first version");
    assert_eq!(store.workflow(tenant, "deploy").await.unwrap(), None);

    assert_eq!(put(&world, &version("deploy", 1)).await, Changed::Done);
    assert_eq!(put(&world, &version("deploy", 1)).await, Changed::Gone, "there is a version 1");
    assert_eq!(put(&world, &version("deploy", 3)).await, Changed::Gone, "a gap");
    assert_eq!(put(&world, &version("deploy", 2)).await, Changed::Done);

    let head = store.workflow(tenant, "deploy").await.unwrap().unwrap();
    assert_eq!((head.latest_version, head.revision, head.disabled), (2, 2, false));
    assert_eq!(head.source_hash, version("deploy", 2).source_hash);
    assert_eq!((head.created_at, head.updated_at), (Timestamp(NOW.0 + 1), Timestamp(NOW.0 + 2)));
    let first = store.workflow_version(tenant, "deploy", 1).await.unwrap();
    assert_eq!(first, Some(version("deploy", 1)));
    assert_eq!(store.workflow_version(tenant, "deploy", 3).await.unwrap(), None);
    assert_eq!(store.workflow(tenant_id(9), "deploy").await.unwrap(), None, "another tenant has none");
    world.store.close().await;
}

async fn lists_have_pages_and_a_workflow_can_rest(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant) = (&world.store, world.tenant);
    for name in ["b", "a", "c"] {
        put(&world, &version(name, 1)).await;
    }
    for number in 2..=4 {
        put(&world, &version("b", number)).await;
    }
    let names = |rows: Vec<interlock_store::WorkflowRow>| rows.into_iter().map(|row| row.name).collect::<Vec<_>>();
    assert_eq!(names(store.list_workflows(tenant, None, 2).await.unwrap()), ["a", "b"]);
    assert_eq!(names(store.list_workflows(tenant, Some("b"), 2).await.unwrap()), ["c"]);
    let numbers: Vec<_> =
        store.workflow_versions(tenant, "b", Some(4), 2).await.unwrap().iter().map(|row| row.version).collect();
    assert_eq!(numbers, [3, 2]);

    let rest = |disabled| SetWorkflowDisabled { tenant, name: "b".into(), disabled, at: NOW };
    assert_eq!(store.write(rest(true)).await.unwrap(), Changed::Done);
    let head = store.workflow(tenant, "b").await.unwrap().unwrap();
    assert_eq!((head.disabled, head.revision), (true, 5));
    let unknown = SetWorkflowDisabled { tenant, name: "nope".into(), disabled: true, at: NOW };
    assert_eq!(store.write(unknown).await.unwrap(), Changed::Gone);
    world.store.close().await;
}

crate::on_every_store!(versions_follow_each_other_and_never_change, lists_have_pages_and_a_workflow_can_rest);
