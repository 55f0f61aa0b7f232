//! What holds for every provider.

use std::fs;
use std::path::Path;

use interlock_core::ids::TenantId;
use interlock_credentials::providers::age_file::{AgeFile, AgeSecrets};
use interlock_credentials::providers::environment::SecretVariables;
use interlock_credentials::providers::fixed::FixedSecrets;
use interlock_credentials::providers::folder::SecretFolder;
use interlock_credentials::vault::Login;
use interlock_credentials::{Cause, Credentials, SecretBuf, SecretProvider, StepScope, Tenancy};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{Folder, TENANT, app_role, clock, step, vault, worker};
use crate::simulator::Simulator;

const VALUE: &str = "s3cr3t-value-0123456789";

/// A provider that holds `TOKEN`, asked as a step would.
async fn holds(provider: impl SecretProvider + 'static, journals: &Path) {
    let credentials = worker(provider, journals);
    let running = step(&credentials);
    assert_eq!(running.get("TOKEN").await.unwrap().reveal(), VALUE);
    assert_eq!(running.get("TOKEN").await.unwrap().reveal(), VALUE);

    for name in ["MISSING", "../TOKEN", "", "TOKEN/"] {
        let error = running.get(name).await.err().unwrap();
        assert!(matches!(error.cause, Cause::NotThere(_)), "{name}: {error}");
        assert_eq!((error.name.as_str(), error.provider.as_str()), (name, "corp"));
        assert!(error.to_string().starts_with(&format!("the secret `{name}` cannot be had from `corp`: ")));
        assert!(!format!("{error} {error:?}").contains(VALUE));
    }

    let used = running.end().await;
    assert_eq!(used.len(), 1, "once, though it was asked for twice");
    assert_eq!(used[0].credential_id, "corp/TOKEN");
    assert_eq!((used[0].lease_id.as_ref(), used[0].revoked_at), (None, None));
    assert!(!serde_json::to_string(&used).unwrap().contains(VALUE));

    let described = credentials.describe().await;
    assert!(described[0].reachable, "{described:?}");
    assert!(!format!("{described:?}").contains(VALUE));
    assert_eq!(credentials.sweep().await, interlock_credentials::Swept::default());
    credentials.close().await;
}

#[tokio::test]
async fn a_folder_keeps_the_contract() {
    let folder = Folder::new();
    folder.put("secrets/TOKEN", &format!("{VALUE}\r\n"));
    holds(SecretFolder::new("corp", folder.0.join("secrets"), Tenancy::One), &folder.journals()).await;
}

#[tokio::test]
async fn an_age_file_keeps_the_contract() {
    let folder = Folder::new();
    let file = AgeFile { file: folder.0.join("secrets.age"), identity: folder.0.join("secrets.key") };
    file.init().unwrap();
    file.set("TOKEN", &SecretBuf::new(VALUE).unwrap()).unwrap();
    assert!(!String::from_utf8_lossy(&fs::read(&file.file).unwrap()).contains(VALUE));
    holds(AgeSecrets::new("corp", file, Tenancy::One), &folder.journals()).await;
}

#[tokio::test]
async fn variables_keep_the_contract() {
    let folder = Folder::new();
    // A variable that every environment of a test has, whatever it holds; setting one is unsafe.
    let (name, value) = std::env::vars().find(|(name, value)| name == "CARGO_PKG_NAME" && !value.is_empty()).unwrap();
    let credentials = worker(SecretVariables::new("corp", "CARGO_"), &folder.journals());
    assert_eq!(step(&credentials).get("PKG_NAME").await.unwrap().reveal(), value, "{name}");
    let error = step(&credentials).get("NO_SUCH_VARIABLE").await.err().unwrap();
    assert!(matches!(error.cause, Cause::NotThere(_)));
}

#[tokio::test]
async fn fixed_secrets_keep_the_contract() {
    let folder = Folder::new();
    holds(FixedSecrets([("TOKEN".to_owned(), VALUE.to_owned())].into()), &folder.journals()).await;
}

#[tokio::test]
async fn a_vault_keeps_the_contract() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    simulator.world().kv.insert("secret/data/app".to_owned(), json!({ "token": VALUE }));
    holds(vault(&simulator, app_role(&folder)), &folder.journals()).await;
}

#[tokio::test]
async fn a_changed_value_is_seen_by_the_next_step_and_not_by_this_one() {
    let folder = Folder::new();
    folder.put("TOKEN", "first-value");
    let credentials = worker(SecretFolder::new("corp", &folder.0, Tenancy::One), &folder.journals());
    let running = step(&credentials);
    assert_eq!(running.get("TOKEN").await.unwrap().reveal(), "first-value");
    folder.put("TOKEN", "second-value");
    assert_eq!(running.get("TOKEN").await.unwrap().reveal(), "first-value");
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), "second-value");
}

#[tokio::test]
async fn tenants_of_one_worker_are_kept_apart() {
    let (folder, simulator) = (Folder::new(), Simulator::start().await);
    folder.put(&format!("secrets/{TENANT}/TOKEN"), "of-the-tenant");
    folder.put("secrets/TOKEN", "of-nobody");
    folder.put(&format!("secrets/{TENANT}/EMPTY"), "\n");
    let folders = worker(SecretFolder::new("corp", folder.0.join("secrets"), Tenancy::Several), &folder.journals());
    assert_eq!(step(&folders).get("TOKEN").await.unwrap().reveal(), "of-the-tenant");
    for name in ["../TOKEN", "EMPTY", "", "a/b", "NONE"] {
        assert!(step(&folders).get(name).await.is_err(), "{name}");
    }
    let other = folders.step(StepScope { tenant: TenantId(Uuid::from_u128(8)), environment: None });
    assert!(other.get("TOKEN").await.is_err(), "another tenant's");

    let file = AgeFile { file: folder.0.join("secrets.age"), identity: folder.0.join("secrets.key") };
    file.init().unwrap();
    file.set("TOKEN", &SecretBuf::new("of-nobody").unwrap()).unwrap();
    let age = worker(AgeSecrets::new("corp", file.clone(), Tenancy::Several), &folder.journals());
    assert!(step(&age).get("TOKEN").await.is_err());
    file.set(&format!("{TENANT}/TOKEN"), &SecretBuf::new("of-the-tenant").unwrap()).unwrap();
    assert_eq!(step(&age).get("TOKEN").await.unwrap().reveal(), "of-the-tenant");

    simulator.world().kv.insert(format!("secret/data/{TENANT}/app"), json!({ "token": "of-the-tenant" }));
    let vaults = worker(vault(&simulator, app_role(&folder)), &folder.journals());
    assert_eq!(step(&vaults).get("TENANTS").await.unwrap().reveal(), "of-the-tenant");
}

#[tokio::test]
async fn an_environment_without_a_provider_gets_nothing() {
    let credentials = Credentials::of_one("corp", std::sync::Arc::new(FixedSecrets::default()), clock());
    let prod = credentials.step(StepScope { tenant: TENANT, environment: Some("prod".to_owned()) });
    let error = prod.get("TOKEN").await.err().unwrap();
    assert!(error.to_string().contains("no provider for the environment `prod`"), "{error}");
    let none = Credentials::none(clock());
    let error = step(&none).get("TOKEN").await.err().unwrap();
    assert!(error.to_string().contains("given no secrets"), "{error}");
}

#[tokio::test]
async fn providers_that_are_gone_are_described_as_such() {
    let folder = Folder::new();
    let gone = AgeFile { file: folder.0.join("no.age"), identity: folder.0.join("no.key") };
    for provider in [
        Box::new(SecretFolder::new("corp", folder.0.join("no"), Tenancy::One)) as Box<dyn SecretProvider>,
        Box::new(AgeSecrets::new("corp", gone, Tenancy::One)),
    ] {
        let described = provider.describe().await;
        assert!(!described.reachable && !described.detail.is_empty(), "{described:?}");
    }
    let simulator = Simulator::start().await;
    let client = vault(&simulator, app_role(&folder));
    assert!(client.describe().await.detail.contains("1.99.0"));
    // What keeps it from signing in is told without trying.
    let no_login = Login::AppRole {
        mount: "approle".into(),
        role_id: "r".into(),
        secret_id_file: folder.0.join("no.secret-id"),
        wrapped: false,
    };
    let described = vault(&simulator, no_login).describe().await;
    assert!(!described.reachable && described.detail.contains("no.secret-id"), "{described:?}");
    simulator.world().sealed = true;
    let described = client.describe().await;
    assert_eq!((described.reachable, described.detail.contains("sealed")), (false, true), "{described:?}");
    assert!(simulator.world().logins() == 0, "looking needs no login, which may be counted");
}

/// Changes of the age file, and what keeps others out of it.
#[test]
fn an_age_file_is_changed_whole_and_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let file = AgeFile { file: folder.0.join("secrets.age"), identity: folder.0.join("secrets.key") };
    assert!(file.names().err().unwrap().to_string().contains("interlock secret init"));
    assert!(file.init().unwrap().starts_with("age1"));
    assert!(file.init().err().unwrap().to_string().contains("not overwritten"));
    for (name, value) in [("B", "two \"quoted\"\nlines"), ("A", "one"), ("T/C", "three")] {
        assert!(!file.set(name, &SecretBuf::new(value).unwrap()).unwrap());
    }
    assert!(file.set("A", &SecretBuf::new("1").unwrap()).unwrap(), "replaced");
    assert_eq!(file.names().unwrap(), ["A", "B", "T/C"]);
    assert!(file.remove("T/C").unwrap() && !file.remove("T/C").unwrap());
    assert_eq!(file.names().unwrap(), ["A", "B"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file.file), mode(&file.identity)), (0o600, 0o600));
    fs::set_permissions(&file.identity, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(file.names().err().unwrap().to_string().contains("chmod 600"));
    fs::set_permissions(&file.identity, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file.file, "not encrypted").unwrap();
    assert!(file.names().err().unwrap().to_string().contains("cannot be decrypted"));
}
