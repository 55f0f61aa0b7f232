//! Leases: short, shared by what belongs together, revoked with the step, and found again in the Vault's audit log.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use interlock_core::time::Timestamp;
use interlock_credentials::{
    Cause, Clock, Credentials, CredentialsOptions, LeaseJournal, SecretProvider, StepCredentials,
};

use crate::harness::{Folder, app_role, step, vault, vault_and_worker};
use crate::simulator::{DATABASE, Fault, Simulator};

#[tokio::test]
async fn user_and_password_come_from_one_lease_that_ends_with_the_step() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    let running = step(&credentials);
    let user = running.get("DB_USER").await.unwrap();
    let password = running.get("DB_PASSWORD").await.unwrap();
    let number = user.reveal().strip_prefix("v-").unwrap();
    assert_eq!(password.reveal(), format!("db-s3cr3t-{number}"));
    assert_eq!(simulator.world().open_leases().len(), 1);

    let used = running.end().await;
    assert_eq!(
        used.iter().map(|used| used.credential_id.as_str()).collect::<Vec<_>>(),
        ["corp/DB_USER", "corp/DB_PASSWORD"]
    );
    assert_eq!(simulator.world().open_leases(), [] as [&String; 0]);
    for used in &used {
        assert!(used.revoked_at.unwrap() > used.fetched_at);
        assert!(simulator.world().leases.contains_key(used.lease_id.as_ref().unwrap()));
    }
}

#[tokio::test]
async fn what_was_used_is_found_in_the_vaults_audit_log() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    let running = step(&credentials);
    running.get("TOKEN").await.unwrap();
    running.get("DB_PASSWORD").await.unwrap();
    let used = running.end().await;
    let world = simulator.world();
    for (used, path) in used.iter().zip(["secret/data/app", DATABASE]) {
        let joined: Vec<_> =
            world.audit.iter().filter(|line| Some(&line.request_id) == used.vault_request_id.as_ref()).collect();
        assert_eq!(joined.len(), 1, "{used:?}");
        assert_eq!((joined[0].operation, joined[0].path.as_str(), joined[0].status), ("read", path, 200));
    }
    let reads = world.audit.iter().filter(|line| line.path == DATABASE || line.path.starts_with("secret/"));
    assert_eq!(reads.count(), used.len(), "and nothing was read that is not recorded");
}

#[tokio::test]
async fn a_long_lease_is_cut_to_five_minutes() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().lease_seconds = 3_600;
    let running = step(&credentials);
    running.get("DB_PASSWORD").await.unwrap();
    let lease = simulator.world().leases.values().next().unwrap().clone();
    assert_eq!((lease.duration, lease.renewals), (300, 1));
    running.end().await;
    assert!(simulator.world().open_leases().is_empty());
}

#[tokio::test]
async fn a_long_lease_that_cannot_be_cut_is_refused_and_given_back() {
    for (renewable, keeps) in [(false, false), (true, true)] {
        let (simulator, credentials, _folder) = vault_and_worker().await;
        {
            let mut world = simulator.world();
            (world.lease_seconds, world.renewable, world.keeps_duration) = (301, renewable, keeps);
        }
        let running = step(&credentials);
        let error = running.get("DB_PASSWORD").await.err().unwrap();
        assert_eq!(error.cause, Cause::LeaseTooLong(Duration::from_secs(301)));
        assert!(error.to_string().contains("default TTL"), "{error}");
        assert_eq!(credentials.sweep().await.revoked, 1);
        assert!(simulator.world().open_leases().is_empty());
        assert_eq!(running.end().await, []);
    }
}

#[tokio::test]
async fn a_lease_that_cannot_be_noted_is_not_used() {
    let (simulator, credentials, folder) = vault_and_worker().await;
    let file = std::fs::read_dir(folder.journals()).unwrap().next().unwrap().unwrap().path();
    // A full disk, as far as a test can have one.
    std::fs::remove_file(&file).unwrap();
    drop(credentials);
    let provider = crate::harness::vault(&simulator, crate::harness::app_role(&folder));
    let credentials =
        interlock_credentials::Credentials::of_one("corp", std::sync::Arc::new(provider), crate::harness::clock());
    let error = step(&credentials).get("DB_PASSWORD").await.err().unwrap();
    assert_eq!(error.cause.code(), "CREDENTIAL_NOT_JOURNALED");
    assert_eq!(credentials.sweep().await.revoked, 1);
    assert!(simulator.world().open_leases().is_empty());
}

/// Runs the step's renewals beside it until they have renewed twice.
async fn renewed_twice(running: &StepCredentials, simulator: &crate::simulator::Simulator) {
    let looking = async {
        while simulator.world().leases.values().map(|lease| lease.renewals).sum::<u32>() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let both = async {
        tokio::select! {
            never = running.keep_alive() => match never {},
            () = looking => {}
        }
    };
    tokio::time::timeout(Duration::from_mins(1), both).await.unwrap();
}

#[tokio::test]
async fn a_long_step_has_its_lease_renewed() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().lease_seconds = 3;
    let running = step(&credentials);
    let first = running.get("DB_PASSWORD").await.unwrap();
    renewed_twice(&running, &simulator).await;
    let second = running.get("DB_PASSWORD").await.unwrap();
    assert_eq!(first.reveal(), second.reveal());
    assert_eq!(simulator.world().leases.len(), 1);
    running.end().await;
    assert!(simulator.world().open_leases().is_empty());
}

/// The Vault is away when a step ends that has gone on for longer than its first lease.
#[tokio::test]
async fn a_renewed_lease_is_still_revoked_after_its_first_term() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    simulator.world().lease_seconds = 1;
    let now = Arc::new(AtomicI64::new(1_000));
    let provider: Arc<dyn SecretProvider> = Arc::new(vault(&simulator, app_role(&folder)));
    let read = Arc::clone(&now);
    let credentials = Credentials::new(CredentialsOptions {
        providers: [("corp".to_owned(), provider)].into(),
        environments: [("default".to_owned(), "corp".to_owned())].into(),
        environment: "default".to_owned(),
        journal: Some(LeaseJournal::open(&folder.journals()).unwrap()),
        clock: Clock::new(move || Timestamp(read.load(Ordering::Relaxed))),
    });
    let running = step(&credentials);
    running.get("DB_PASSWORD").await.unwrap();
    now.fetch_add(600_000, Ordering::Relaxed);
    renewed_twice(&running, &simulator).await;
    for _ in 0..2 {
        simulator.world().fail("sys/leases/revoke", Fault::Status(500));
    }
    running.end().await;
    let swept = credentials.sweep().await;
    assert_eq!((swept.revoked, swept.left), (0, 1), "it is not over yet");
    assert_eq!(credentials.sweep().await.revoked, 1);
    assert!(simulator.world().open_leases().is_empty());
}

/// The command that was kept company ends while the Vault's answer to a renewal is on its way.
#[tokio::test]
async fn a_renewal_that_is_broken_off_loses_no_lease() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().lease_seconds = 3;
    let running = step(&credentials);
    let first = running.get("DB_PASSWORD").await.unwrap();
    simulator.world().fail("sys/leases/renew", Fault::Slow(Duration::from_millis(500)));
    let asked = async {
        while !simulator.world().all_faults_met() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        never = running.keep_alive() => match never {},
        () = asked => {}
    }
    assert_eq!(running.get("DB_PASSWORD").await.unwrap().reveal(), first.reveal());
    assert_eq!(simulator.look(|world| (world.leases.len(), world.open_leases().len())), (1, 1));
    running.end().await;
    assert!(simulator.world().open_leases().is_empty());
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_is_replaced() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    {
        let mut world = simulator.world();
        (world.lease_seconds, world.renewable) = (1, false);
    }
    let running = step(&credentials);
    let first = running.get("DB_PASSWORD").await.unwrap().reveal().to_owned();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_ne!(running.get("DB_PASSWORD").await.unwrap().reveal(), first);
    assert_eq!(simulator.look(|world| (world.leases.len(), world.open_leases().len())), (2, 1));
    let used = running.end().await;
    assert_eq!(used.len(), 2, "both are on record");
    assert!(used.iter().all(|used| used.revoked_at.is_some()));
}

#[tokio::test]
async fn a_revocation_that_fails_is_tried_again() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    let running = step(&credentials);
    running.get("DB_PASSWORD").await.unwrap();
    simulator.world().fail("sys/leases/revoke", Fault::Status(500));
    let used = running.end().await;
    assert_eq!(used[0].revoked_at, None, "nothing is claimed that the Vault has not confirmed");
    assert_eq!(simulator.world().open_leases().len(), 1);
    let swept = credentials.sweep().await;
    assert_eq!((swept.revoked, swept.left), (1, 0));
    assert!(simulator.world().open_leases().is_empty());
}

#[tokio::test]
async fn a_dropped_step_has_its_leases_revoked_in_the_background() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let sweeping = {
        let (credentials, stop) = (credentials.clone(), stop.clone());
        tokio::spawn(async move { credentials.keep_sweeping(stop).await })
    };
    let running = step(&credentials);
    running.get("DB_PASSWORD").await.unwrap();
    drop(running);
    let revoked = async {
        while !simulator.world().open_leases().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), revoked).await.unwrap();
    stop.cancel();
    sweeping.await.unwrap();
}
