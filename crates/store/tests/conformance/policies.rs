//! Versions of a policy, and which of them is in force.

use interlock_core::json::Hash;
use interlock_store::{Changed, PolicyBundleRow, PolicyBundleSummary, PutPolicyBundle, SetPolicy};

use crate::harness::{NOW, TestDatabase, World, tenant_id};

crate::on_every_store!(versions_stay_and_one_is_in_force);

fn bundle(version: u32) -> PolicyBundleRow {
    let hash = Hash::of(&version.to_be_bytes());
    let (created_at, created_by) = (NOW, Some("ada".to_owned()));
    let summary = PolicyBundleSummary { version, hash, note: Some("why".into()), created_at, created_by };
    PolicyBundleRow { summary, files: format!("{{\"a.rego\":\"{version}\"}}") }
}

async fn versions_stay_and_one_is_in_force(database: &TestDatabase) {
    let World { store, tenant, .. } = database.world().await;
    let put = async |version| store.write(PutPolicyBundle { tenant, bundle: bundle(version) }).await.unwrap();
    assert_eq!(store.policy(tenant).await.unwrap(), None);
    assert_eq!(put(2).await, Changed::Gone, "the first one is 1");
    assert_eq!((put(1).await, put(1).await, put(2).await), (Changed::Done, Changed::Gone, Changed::Done));
    let set = async |active, shadow, revision| {
        let by = Some("bob".to_owned());
        store.write(SetPolicy { tenant, active, shadow, revision, at: NOW, by }).await.unwrap()
    };
    assert_eq!(set(Some(3), None, 2).await, Changed::Gone, "there is none");
    assert_eq!(set(Some(1), Some(2), 1).await, Changed::Gone, "another change was faster");
    assert_eq!(set(Some(1), Some(2), 2).await, Changed::Done);
    let row = store.policy(tenant).await.unwrap().unwrap();
    assert_eq!((row.revision, row.active, row.shadow, row.latest), (3, Some(1), Some(2), 2));
    assert_eq!(row.updated_by.as_deref(), Some("bob"));
    assert_eq!(put(3).await, Changed::Done);
    let row = store.policy(tenant).await.unwrap().unwrap();
    assert_eq!((row.revision, row.latest), (4, 3));
    assert_eq!(row.updated_by.as_deref(), Some("bob"), "a version that is only there has put nothing in force");
    assert_eq!(set(None, None, 4).await, Changed::Done);
    assert_eq!(store.policy(tenant).await.unwrap().unwrap().active, None);

    assert_eq!(store.policy_bundle(tenant, 2).await.unwrap(), Some(bundle(2)));
    assert_eq!(store.policy_bundle_hashed(tenant, bundle(1).summary.hash).await.unwrap(), Some(bundle(1)));
    assert_eq!(store.policy_bundle(tenant_id(9), 2).await.unwrap(), None, "another tenant has none");
    let versions: Vec<u32> =
        store.policy_bundles(tenant, None, 10).await.unwrap().iter().map(|one| one.version).collect();
    assert_eq!(versions, [3, 2, 1]);
}
