//! After a crash: the next start finds the leases in the journal and revokes them.

use std::fs;

use crate::harness::{app_role, step, vault, vault_and_worker, worker};
use crate::simulator::SECRET_ID;

#[tokio::test]
async fn leases_of_a_crashed_worker_are_revoked_at_the_next_start() {
    let (simulator, crashed, folder) = vault_and_worker().await;
    let running = step(&crashed);
    let password = running.get("DB_PASSWORD").await.unwrap();
    let journal = fs::read_dir(folder.journals()).unwrap().next().unwrap().unwrap().path();
    let written = fs::read_to_string(&journal).unwrap();
    assert!(written.contains("database/creds/readonly/"), "{written}");
    for secret in [password.reveal(), "hvs.", SECRET_ID] {
        assert!(!written.contains(secret), "{written}");
    }
    // No process is left that would revoke: the journal is all there is.
    drop((running, crashed));
    assert_eq!(simulator.world().open_leases().len(), 1);

    let next = worker(vault(&simulator, app_role(&folder)), &folder.journals());
    let swept = next.sweep().await;
    assert_eq!((swept.revoked, swept.left), (1, 0));
    assert!(simulator.world().open_leases().is_empty());
    assert!(!journal.exists());
    next.close().await;
    drop(next);
    assert_eq!(fs::read_dir(folder.journals()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_sweep_goes_on_once_the_vault_is_back() {
    let (simulator, crashed, folder) = vault_and_worker().await;
    let running = step(&crashed);
    running.get("DB_PASSWORD").await.unwrap();
    drop((running, crashed));
    simulator.world().sealed = true;
    let next = worker(vault(&simulator, app_role(&folder)), &folder.journals());
    assert_eq!(next.sweep().await.left, 1);
    // A second crash before it could be revoked.
    drop(next);
    simulator.world().sealed = false;
    let last = worker(vault(&simulator, app_role(&folder)), &folder.journals());
    assert_eq!(last.sweep().await.revoked, 1);
    assert!(simulator.world().open_leases().is_empty());
}
