//! A Vault that fails: the step fails closed, and the error names the credential and the cause.

use std::time::Duration;

use interlock_core::plan::retry::ErrorClass;
use interlock_credentials::{Cause, CredentialError, limits};

use crate::harness::{step, vault_and_worker, vault_and_worker_with_timeout};
use crate::simulator::{DATABASE, Fault};

async fn failing(fault: Option<Fault>) -> CredentialError {
    failing_within(limits::CALL_TIMEOUT_MAX, fault).await
}

/// For a worker that waits for the Vault's answers for this long.
async fn failing_within(timeout: Duration, fault: Option<Fault>) -> CredentialError {
    let (simulator, credentials, _folder) = vault_and_worker_with_timeout(timeout).await;
    match fault {
        Some(fault) => simulator.world().fail("secret/", fault),
        None => simulator.world().sealed = true,
    }
    let error = step(&credentials).get("TOKEN").await.err().unwrap();
    assert!(error.to_string().starts_with("the secret `TOKEN` cannot be had from `corp`: "), "{error}");
    for secret in ["kv-s3cr3t", "s3cr3t-id", "hvs."] {
        assert!(!format!("{error} {error:?}").contains(secret), "{error}");
    }
    error
}

#[tokio::test]
async fn a_sealed_vault_is_named_and_tried_again() {
    let error = failing(None).await;
    assert_eq!((&error.cause, error.cause.code()), (&Cause::Sealed, "CREDENTIAL_SEALED"));
    assert!(error.cause.class().is_retryable());
}

#[tokio::test]
async fn too_many_requests_say_when_to_come_back() {
    let error = failing(Some(Fault::Throttled { after: 7 })).await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(error.cause.class(), ErrorClass::RateLimited);
    assert!(error.to_string().contains("429") && error.to_string().contains("7 s"), "{error}");
    let error = failing(Some(Fault::Throttled { after: 999_999 })).await;
    assert_eq!(error.retry_after(), Some(limits::RETRY_AFTER_MAX));
}

#[tokio::test]
async fn server_errors_are_tried_again() {
    for status in [500, 502, 503, 412] {
        let error = failing(Some(Fault::Status(status))).await;
        assert_eq!(error.cause.code(), "CREDENTIAL_UNAVAILABLE", "{error}");
        assert!(error.cause.class().is_retryable() && error.to_string().contains(&status.to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_slow_vault_is_not_waited_for() {
    let error = failing_within(Duration::from_secs(1), Some(Fault::Slow(Duration::from_mins(1)))).await;
    assert_eq!(error.cause, Cause::TooSlow(Duration::from_secs(1)));
    assert_eq!(error.cause.class(), ErrorClass::Timeout);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_or_garbled_is_not_used() {
    let cut = failing(Some(Fault::Truncated)).await;
    assert_eq!((cut.cause.code(), cut.cause.class()), ("CREDENTIAL_CUT_OFF", ErrorClass::Unavailable), "{cut}");
    let garbled = failing(Some(Fault::Garbled)).await;
    assert_eq!(garbled.cause.code(), "CREDENTIAL_UNREADABLE", "{garbled}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_token() {
    let error = failing(Some(Fault::Status(307))).await;
    assert!(error.to_string().contains("redirect (307)"), "{error}");
}

#[tokio::test]
async fn a_dead_token_is_replaced_once() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    assert!(credentials.prepare().await.is_empty());
    simulator.world().fail("secret/", Fault::Expired);
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), "kv-s3cr3t");
    assert_eq!(simulator.world().logins(), 2);
}

#[tokio::test]
async fn a_refusal_by_policy_costs_no_login() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().denied.insert("secret/".to_owned());
    for _ in 0..3 {
        let error = step(&credentials).get("TOKEN").await.err().unwrap();
        assert_eq!((error.cause.code(), error.cause.class()), ("CREDENTIAL_DENIED", ErrorClass::Invalid));
        assert!(error.to_string().contains("403") && error.to_string().contains("`secret/data/app`"), "{error}");
    }
    assert_eq!(simulator.world().logins(), 1);
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    let error = step(&credentials).get("NO_FIELD").await.err().unwrap();
    assert!(error.to_string().contains("`secret/data/app` has no field `nothing`"), "{error}");
    let error = step(&credentials).get("OLD").await.err().unwrap();
    assert!(error.to_string().contains("nothing at `kv/app` (404)"), "{error}");
    simulator.world().kv.insert("kv/app".to_owned(), serde_json::json!({ "token": "old-s3cr3t" }));
    assert_eq!(step(&credentials).get("OLD").await.unwrap().reveal(), "old-s3cr3t");
    simulator.world().kv.insert("secret/data/app".to_owned(), serde_json::Value::Null);
    let error = step(&credentials).get("TOKEN").await.err().unwrap();
    assert!(error.to_string().contains("not deleted"), "{error}");
}

#[tokio::test]
async fn a_vault_that_is_gone_or_closed_to_us_is_named() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    drop(simulator);
    let error = step(&credentials).get("TOKEN").await.err().unwrap();
    assert!(matches!(error.cause, Cause::Unavailable(_) | Cause::CutOff(_)), "{error}");
    let gone = step(&credentials).get("DB_PASSWORD").await.err().unwrap();
    assert!(gone.cause.class().is_retryable(), "{gone}");
}

/// The Vault has made a credential, and its answer never came: the lease's id is not known, so it ends by itself.
#[tokio::test]
async fn a_lease_whose_answer_was_cut_off_is_not_used() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().fail(DATABASE, Fault::Truncated);
    let running = step(&credentials);
    assert_eq!(running.get("DB_PASSWORD").await.err().unwrap().cause.code(), "CREDENTIAL_CUT_OFF");
    assert_eq!(running.end().await, []);
    assert_eq!(simulator.world().open_leases().len(), 1);
    assert_eq!(simulator.world().leases.values().next().unwrap().duration, 60, "at most the role's TTL");
}
