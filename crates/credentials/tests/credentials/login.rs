//! Ways into a Vault.

use std::path::PathBuf;

use interlock_credentials::vault::{AwsIdentity, AwsKeySource, Login};
use interlock_credentials::{Cause, SecretProvider as _};

use crate::harness::{Folder, app_role, step, vault, vault_and_worker, worker};
use crate::simulator::{JWT, ROLE_ID, SECRET_ID, Simulator};
use crate::sts::{self, ACCESS_KEY_ID, SECRET_ACCESS_KEY, SERVER_ID, SESSION_TOKEN};

const MADE_BY: &str = "auth/approle/role/worker/secret-id";

fn wrapped(folder: &Folder, token: &str) -> Login {
    let secret_id_file = folder.put("wrapped", token);
    Login::AppRole { mount: "approle".to_owned(), role_id: ROLE_ID.to_owned(), secret_id_file, wrapped: true }
}

fn jwt(mount: &str, jwt_file: PathBuf, fields: &[(&str, &str)]) -> Login {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Login::Jwt { mount: mount.to_owned(), role: "worker".to_owned(), jwt_file, fields }
}

#[tokio::test]
async fn one_login_serves_many_steps_and_ends_with_the_worker() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    for _ in 0..5 {
        step(&credentials).get("TOKEN").await.unwrap();
    }
    assert_eq!(simulator.look(|world| (world.logins(), world.tokens.len())), (1, 1));
    assert_eq!(simulator.world().namespaces.iter().collect::<Vec<_>>(), ["team"]);
    credentials.close().await;
    assert!(simulator.world().tokens.is_empty(), "the worker's token is revoked");
}

#[tokio::test]
async fn a_used_up_secret_id_is_named_and_not_tried_on_and_on() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    simulator.world().secret_ids.insert(SECRET_ID.to_owned(), 0);
    for _ in 0..3 {
        let error = step(&credentials).get("TOKEN").await.err().unwrap();
        assert_eq!(error.cause.code(), "CREDENTIAL_LOGIN_REFUSED");
        let said = error.to_string();
        assert!(said.contains("used up or expired"), "{said}");
        assert!(!said.contains(SECRET_ID) && said.contains("***"), "the server repeats it, we do not: {said}");
    }
    assert_eq!(simulator.world().audit.len(), 1, "a Vault counts refused logins");
}

#[tokio::test]
async fn a_wrapped_secret_id_is_exchanged_once() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    simulator.world().kv.insert("secret/data/app".to_owned(), serde_json::json!({ "token": "kv-s3cr3t" }));
    simulator.world().wrapped.insert("wrap-1".to_owned(), (SECRET_ID.to_owned(), MADE_BY.to_owned()));
    let credentials = worker(vault(&simulator, wrapped(&folder, "wrap-1\n")), &folder.journals());
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), "kv-s3cr3t");
    // A new login needs no second exchange.
    simulator.world().tokens.clear();
    assert_eq!(step(&credentials).get("TOKEN").await.unwrap().reveal(), "kv-s3cr3t");
    assert_eq!(simulator.look(|world| (world.logins(), world.wrapped.len())), (2, 0));
}

#[tokio::test]
async fn a_wrapping_token_that_was_taken_or_forged_raises_the_alarm() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    let taken = vault(&simulator, wrapped(&folder, "wrap-0123456789")).prepare().await.err().unwrap();
    assert!(taken.to_string().contains("audit log") && !taken.to_string().contains("wrap-0123456789"), "{taken}");
    simulator.world().wrapped.insert("forged".to_owned(), (SECRET_ID.to_owned(), "cubbyhole/mine".to_owned()));
    let forged = vault(&simulator, wrapped(&folder, "forged")).prepare().await.err().unwrap();
    assert!(forged.to_string().contains("was not made by `auth/approle/role/"), "{forged}");
    assert_eq!(simulator.world().wrapped.len(), 1, "it is not even opened");
}

#[tokio::test]
async fn a_signed_token_of_the_platform_lets_in() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    let jwt_file = folder.put("jwt", JWT);
    // As Kubernetes may mount it.
    std::fs::set_permissions(&jwt_file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let login = jwt("jwt", jwt_file, &[]);
    vault(&simulator, login.clone()).prepare().await.unwrap();
    folder.put("jwt", "expired.jwt.value");
    let refused = vault(&simulator, login).prepare().await.err().unwrap();
    assert!(matches!(&refused, Cause::LoginRefused(what) if what.contains("expired")), "{refused}");
    assert!(!refused.to_string().contains("expired.jwt.value"));
}

#[tokio::test]
async fn the_methods_of_clouds_and_kubernetes_take_the_platforms_token_too() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    let jwt_file = folder.put("jwt", JWT);
    let machine = [("subscription_id", "s-1"), ("resource_group_name", "workers"), ("vm_name", "worker-1")];
    let nothing: &[(&str, &str)] = &[];
    for (mount, fields) in [("kubernetes", nothing), ("team/gcp", nothing), ("azure", machine.as_slice())] {
        vault(&simulator, jwt(mount, jwt_file.clone(), fields)).prepare().await.unwrap();
    }
    let without = vault(&simulator, jwt("azure", jwt_file, &[])).prepare().await.err().unwrap();
    assert!(without.to_string().contains("not of this machine"), "{without}");
}

#[tokio::test]
async fn aws_keys_sign_a_question_that_the_vault_sends_on() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    simulator.world().aws = sts::believes;
    let keys = |token: &str| {
        let (id, secret) = (ACCESS_KEY_ID, SECRET_ACCESS_KEY);
        let profile = format!("aws_access_key_id = {id}\naws_secret_access_key = {secret}\n{token}\n");
        folder.put("aws", &format!("[default]\naws_access_key_id = other\n\n[worker]\n{profile}"));
    };
    let login = |region: Option<&str>, server_id: &str| {
        let keys = AwsKeySource::File { file: folder.0.join("aws"), profile: "worker".to_owned() };
        let (region, server_id) = (region.map(str::to_owned), Some(server_id.to_owned()));
        let identity = AwsIdentity { keys, region, server_id };
        Login::Aws { mount: "aws".to_owned(), role: "worker".to_owned(), identity }
    };
    for token in [String::new(), format!("aws_session_token = {SESSION_TOKEN}")] {
        keys(&token);
        for region in [None, Some("eu-central-1")] {
            vault(&simulator, login(region, SERVER_ID)).prepare().await.unwrap();
        }
    }
    // The keys are read anew for each login, and nothing of them is shown.
    keys("aws_session_token = an-old-one");
    let refused = vault(&simulator, login(None, SERVER_ID)).prepare().await.err().unwrap();
    let said = refused.to_string();
    assert!(matches!(&refused, Cause::LoginRefused(_)) && said.contains("the session token is expired: ***"), "{said}");
    assert!(!said.contains(SECRET_ACCESS_KEY) && !said.contains("an-old-one"), "{said}");
    let elsewhere = vault(&simulator, login(None, "other.example.org")).prepare().await.err().unwrap();
    assert!(elsewhere.to_string().contains("another host or Vault"), "{elsewhere}");
    let wrong = format!("aws_secret_access_key = another\naws_session_token = {SESSION_TOKEN}");
    folder.put("aws", &format!("[worker]\naws_access_key_id = {ACCESS_KEY_ID}\n{wrong}\n"));
    let unsigned = vault(&simulator, login(None, SERVER_ID)).prepare().await.err().unwrap().to_string();
    assert!(unsigned.contains("x-amz-security-token:***") && !unsigned.contains(SESSION_TOKEN), "{unsigned}");
    folder.put("aws", "[worker]\naws_access_key_id = A\n");
    let missing = vault(&simulator, login(None, SERVER_ID)).prepare().await.err().unwrap();
    assert!(missing.to_string().contains("of the profile `worker` in ") && missing.to_string().contains("is missing"));
}

#[tokio::test]
async fn a_file_that_is_missing_empty_or_open_to_others_is_named() {
    let (simulator, folder) = (Simulator::start().await, Folder::new());
    let login = app_role(&folder);
    folder.put("secret-id", "\n");
    let empty = vault(&simulator, login.clone()).prepare().await.err().unwrap();
    assert!(empty.to_string().contains("secret-id") && empty.to_string().contains("empty"), "{empty}");
    let known = folder.put("secret-id", &format!("{SECRET_ID}\n"));
    std::fs::set_permissions(&known, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let known = vault(&simulator, login.clone()).prepare().await.err().unwrap().to_string();
    assert!(known.contains("its mode is 644); run: chmod 600") && !known.contains(SECRET_ID), "{known}");
    std::fs::remove_file(folder.0.join("secret-id")).unwrap();
    let missing = vault(&simulator, login).prepare().await.err().unwrap();
    assert!(missing.to_string().contains("No such file"), "{missing}");
}

#[tokio::test]
async fn a_token_is_renewed_in_its_second_half() {
    let (simulator, credentials, _folder) = vault_and_worker().await;
    // Past its half at once; its end is not near, because renewing gives it a new one.
    simulator.world().token_seconds = 1;
    credentials.prepare().await;
    tokio::time::sleep(std::time::Duration::from_millis(600)).await;
    simulator.world().token_seconds = 600;
    step(&credentials).get("TOKEN").await.unwrap();
    assert_eq!(simulator.look(|world| (world.logins(), world.token_renewals)), (1, 1));
}
