//! The keys that a server makes by itself.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use interlock_server::ServerSecret;
use interlock_server::identity::first_key;
use interlock_store::forget_memory;

use crate::api::engine;

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("interlock-keys-{name}-{}", std::process::id()))
}

#[tokio::test(start_paused = true)]
async fn a_new_store_gives_its_first_key_once() {
    let (engine, [tenant, _], database) = engine().await;
    let (folder, secret) = (folder("first"), ServerSecret::random());
    let path = folder.join("admin.key");
    assert!(first_key::bootstrap(&engine, &secret, tenant, &path).await.unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&path).unwrap();
    let rows = engine.store().find_keys(&key[4..16]).await.unwrap();
    assert_eq!((rows.len(), rows[0].tenant, rows[0].installation), (1, tenant, true));
    assert_eq!(rows[0].roles.to_string(), "admin");

    let other = folder.join("other.key");
    assert!(!first_key::bootstrap(&engine, &secret, tenant, &other).await.unwrap());
    assert!(!other.exists(), "a store that is not new gives no key away");
    std::fs::remove_dir_all(&folder).unwrap();
    engine.stop().await;
    forget_memory(&database);
}

#[tokio::test(start_paused = true)]
async fn a_first_key_whose_commit_was_lost_is_made_from_the_file() {
    let (engine, [tenant, _], database) = engine().await;
    let (folder, secret) = (folder("lost"), ServerSecret::random());
    let path = folder.join("admin.key");
    let written = interlock_server::identity::key::KeyText::random();
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&path, written.reveal()).unwrap();
    assert!(first_key::bootstrap(&engine, &secret, tenant, &path).await.unwrap());
    assert_eq!(engine.store().find_keys(written.lookup()).await.unwrap().len(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
    engine.stop().await;
    forget_memory(&database);
}

#[tokio::test(start_paused = true)]
async fn the_local_key_is_kept_while_it_works() {
    let (engine, [tenant, _], database) = engine().await;
    let (folder, secret) = (folder("local"), ServerSecret::random());
    let path = folder.join("local.key");
    let first = first_key::local(&engine, &secret, tenant, &path).await.unwrap();
    assert_eq!(first_key::local(&engine, &secret, tenant, &path).await.unwrap(), first);
    let row = engine.store().find_keys(first.lookup()).await.unwrap().remove(0);
    assert_eq!((row.roles.to_string(), row.installation), ("admin,worker".into(), true));

    let revoke = interlock_store::IdentityOp::RevokeKey { tenant, key: row.id, at: engine.now() };
    engine.store().execute(interlock_store::Op::Identity(revoke)).await.unwrap();
    let second = first_key::local(&engine, &secret, tenant, &path).await.unwrap();
    assert_ne!(second, first);
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), second.reveal());
    std::fs::remove_dir_all(&folder).unwrap();
    engine.stop().await;
    forget_memory(&database);
}
