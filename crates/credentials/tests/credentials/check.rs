//! Whether a secret could be had, found out without fetching it.

use interlock_credentials::{Cause, StepScope};

use crate::harness::{TENANT, vault_and_worker};
use crate::simulator::{DATABASE, Fault};

fn scope() -> StepScope {
    StepScope { tenant: TENANT, environment: None }
}

#[tokio::test]
async fn a_check_reads_no_secret_and_takes_no_lease() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    for name in ["TOKEN", "DB_USER", "DB_PASSWORD"] {
        assert_eq!(credentials.check(&scope(), name).await, Ok(()), "{name}");
    }
    let (leases, reads) = simulator.look(|world| {
        let is_secret = |path: &str| path.starts_with("secret/") || path.starts_with(DATABASE);
        (world.leases.len(), world.audit.iter().filter(|line| is_secret(&line.path)).count())
    });
    assert_eq!((leases, reads), (0, 0), "the Vault's audit log has no read that a step would have to account for");
}

#[tokio::test]
async fn a_check_says_what_a_step_would_be_refused() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().denied.insert(DATABASE.to_owned());
    let error = credentials.check(&scope(), "DB_USER").await.unwrap_err();
    assert!(matches!(error.cause, Cause::Denied(_)) && error.to_string().contains(DATABASE), "{error}");
    let error = credentials.check(&scope(), "UNKNOWN").await.unwrap_err();
    assert!(matches!(error.cause, Cause::NotThere(_)), "{error}");
    simulator.world().fail("sys/capabilities-self", Fault::Status(500));
    let error = credentials.check(&scope(), "TOKEN").await.unwrap_err();
    assert!(matches!(error.cause, Cause::Unavailable(_)), "{error}");
    simulator.world().sealed = true;
    assert_eq!(credentials.check(&scope(), "TOKEN").await.unwrap_err().cause, Cause::Sealed);
}

#[tokio::test]
async fn a_role_that_may_not_ask_is_let_in_all_the_same() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().denied.insert("sys/capabilities-self".to_owned());
    assert_eq!(credentials.check(&scope(), "TOKEN").await, Ok(()));
}
