//! Keys: those that a server makes by itself, and those that admins make; and tenants.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use interlock_core::tenant::identity::Role;
use interlock_server::ServerSecret;
use interlock_server::identity::{NewKey, first_key};
use interlock_store::forget_memory;
use serde_json::json;

use crate::harness::{Api, engine};

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
    let notes = engine.store().audit_notes(tenant, 10).await.unwrap();
    let noted = notes.iter().find(|note| note.kind == "key.created").expect("the log tells of it");
    assert_eq!((noted.initiator.as_str(), noted.subject.clone()), ("system", Some(rows[0].id.to_string())));
    assert!(!noted.details.as_str().contains(key.trim()));

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
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
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

    let revoke = interlock_store::RevokeKey { tenant, key: row.id, at: engine.now() };
    engine.store().write(revoke).await.unwrap();
    let second = first_key::local(&engine, &secret, tenant, &path).await.unwrap();
    assert_ne!(second, first);
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), second.reveal());
    std::fs::remove_dir_all(&folder).unwrap();
    engine.stop().await;
    forget_memory(&database);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_made_rotated_and_revoked_at_once() {
    let api = crate::harness::Api::new().await;
    let made = api.post("/keys", json!({ "name": "ci", "roles": ["viewer"], "expires_in_ms": 3_600_000 })).await;
    assert_eq!(made.status, 201);
    let (key, text) = (made.text("key"), made.text("text"));
    assert!(text.starts_with(&made.text("begins")) && text.len() == 59, "{}", made.body);
    let ci = api.with_key(&text);
    assert_eq!(ci.get("/me").await.ok()["roles"], json!(["viewer"]));
    let listed = api.get("/keys").await.ok();
    assert!(!listed.to_string().contains(&text[16..]), "no list shows a key");

    let rotated = api.post(&format!("/keys/{key}/rotate"), json!({ "overlap_ms": 60_000 })).await;
    let renewed = api.with_key(&rotated.text("text"));
    assert_eq!(renewed.get("/me").await.ok()["client"], ci.get("/me").await.ok()["client"], "the client stays");
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    assert_eq!(ci.get("/me").await.status, 401, "the old text is over");

    let path = format!("/api/v1/keys/{}", rotated.text("key"));
    assert_eq!(renewed.get("/me").await.status, 200);
    assert!(api.send("DELETE", &path, json!({})).await.ok()["revoked_at"].is_i64());
    assert_eq!(renewed.get("/me").await.status, 401, "at once");
    let again = api.post(&format!("/keys/{}/rotate", rotated.text("key")), json!({})).await;
    assert_eq!(again.problem(), (409, "KEY_OVER"));
    for body in [
        json!({ "name": "x", "roles": [] }),
        json!({ "name": "", "roles": ["viewer"] }),
        json!({ "name": "x", "roles": ["viewer"], "owner": "nobody" }),
    ] {
        assert_eq!(api.post("/keys", body.clone()).await.problem(), (422, "INPUT_INVALID"), "{body}");
    }
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn tenants_are_made_by_whoever_has_charge_of_the_installation() {
    let api = crate::harness::Api::new().await;
    assert_eq!(api.post("/tenants", json!({ "name": "three" })).await.problem(), (403, "PERMISSION_DENIED"));
    let mut new = NewKey::new(api.tenant, "root", [Role::Admin].into_iter().collect());
    new.installation = true;
    let root = api.with_key(&api.new_key(new).await);
    let made = root.post("/tenants", json!({ "name": "three", "with": { "max_concurrency": 5 } })).await;
    assert_eq!((made.status.as_u16(), &made.body["max_concurrency"]), (201, &json!(5)));
    assert_eq!(root.post("/tenants", json!({ "name": "three" })).await.problem(), (409, "TENANT_EXISTS"));
    assert_eq!(root.get("/tenants").await.ok()["tenants"].as_array().unwrap().len(), 3);

    let admin = api.with_key(&made.text("admin_key"));
    let me = admin.get("/me").await.ok();
    assert_eq!((&me["tenant_name"], &me["installation"]), (&json!("three"), &json!(false)));
    assert_eq!(admin.get("/tenants").await.ok()["tenants"].as_array().unwrap().len(), 1);
    let path = format!("/api/v1/tenants/{}", made.text("tenant"));
    assert_eq!(admin.send("PATCH", &path, json!({ "weight": 9 })).await.problem(), (403, "PERMISSION_DENIED"));
    assert_eq!(admin.send("PATCH", &path, json!({ "self_approval": true })).await.status, 200);
    let changed = root.send("PATCH", &path, json!({ "max_concurrency": 0, "disabled": true })).await.ok();
    assert_eq!(changed.get("max_concurrency"), None);
    assert_eq!(admin.get("/me").await.status, 401, "a disabled tenant's keys are none");
    root.send("PATCH", &path, json!({ "disabled": false })).await.ok();
    assert_eq!(admin.get("/me").await.status, 200);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_nested_too_deep_is_not_read() {
    let api = crate::harness::Api::new().await;
    let mut deep = json!("a \" [[[ b");
    for _ in 0..62 {
        deep = json!([deep]);
    }
    assert_eq!(api.post("/signals", json!({ "type": "go", "key": "k", "payload": deep })).await.status, 201);
    let deeper = json!({ "type": "go", "key": "k", "payload": [[deep]] });
    assert_eq!(api.post("/signals", deeper).await.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test]
async fn a_nul_is_refused_where_it_would_become_a_column() {
    nuls(Api::new().await).await;
}

/// PostgreSQL's text takes none: one would fail the commit that it is in, and what others have in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_is_refused_on_postgres_alike() {
    nuls(Api::on_postgres("nuls").await).await;
}

async fn nuls(api: Api) {
    for body in [
        json!({ "type": "a\0b", "key": "k" }),
        json!({ "type": "go", "key": "a\0b" }),
        json!({ "type": "go", "key": "k", "source_id": "\0" }),
    ] {
        let answer = api.post("/signals", body).await;
        assert_eq!(answer.problem(), (400, "REQUEST_INVALID"));
        assert!(answer.text("detail").contains("NUL"));
    }
    let kept = json!({ "type": "go", "key": "k", "payload": { "text": "a\0b" } });
    assert_eq!(api.post("/signals", kept).await.status, 201);
    assert_eq!(api.get("/workflows/a%00b").await.problem(), (400, "REQUEST_INVALID"));
    assert_eq!(api.get("/waits?key=a%00b").await.problem(), (400, "REQUEST_INVALID"));
    for list in ["workflows", "runs", "schedules", "users"] {
        let answer = api.get(&format!("/{list}?after=a%00b")).await;
        assert_eq!(answer.problem(), (400, "REQUEST_INVALID"), "a cursor of {list}");
    }
    api.end().await;
}

#[tokio::test]
async fn a_list_is_no_object() {
    let api = Api::new().await;
    for path in ["/signals", "/keys", "/runs"] {
        let answer = api.post(path, json!(["go", "k", null, null])).await;
        assert_eq!(answer.problem(), (400, "REQUEST_INVALID"));
        assert!(answer.text("detail").contains("object"));
    }
    api.end().await;
}

/// Rows keep a key that no person owns by its id, by which it is held against who may decide. People read its name.
#[tokio::test(start_paused = true)]
async fn what_a_key_without_an_owner_has_made_is_told_under_its_name() {
    let api = Api::new().await;
    let made = api.post("/keys", json!({ "name": "bot", "roles": ["viewer"] })).await.ok();
    let user = api.post("/users", json!({ "name": "ada", "roles": ["viewer"] })).await.ok();
    let identity = json!({ "name": "box-1", "terms": { "environments": ["dev"] } });
    let identity = api.post("/worker-identities", identity).await.ok();
    for created in [&made, &user, &identity] {
        assert_eq!(created["created_by"], "key test", "{created}");
    }
    let (key, person) = (made["key"].as_str().unwrap(), user["user"].as_str().unwrap());
    for path in [format!("/keys/{key}"), format!("/users/{person}")] {
        assert_eq!(api.get(&path).await.ok()["created_by"], "key test", "{path}");
    }
    for (path, list) in [("/keys", "keys"), ("/users", "users"), ("/worker-identities", "identities")] {
        let listed = api.get(path).await.ok();
        let named = |row: &serde_json::Value| row["created_by"] == "key test";
        assert!(listed[list].as_array().unwrap().iter().any(named), "{listed}");
    }
    api.post("/workflows", json!({ "source": "name: ship\nsteps: [ { id: a, task: a } ]\n" })).await.ok();
    assert_eq!(api.get("/workflows").await.ok()["workflows"][0]["applied_by"], "key test");
    assert_eq!(api.get("/workflows/ship/versions").await.ok()["versions"][0]["applied_by"], "key test");
    for path in ["/workflows/ship", "/workflows/ship/versions/1"] {
        assert_eq!(api.get(path).await.ok()["applied_by"], "key test", "{path}");
    }
    let schedule = json!({ "name": "nightly", "workflow": "ship", "cron": "0 3 * * *" });
    let inbound = json!({ "name": "hub", "source": "github" });
    let outbound = json!({ "name": "desk", "url": "https://example.org/hook", "events": ["approval.expired"] });
    for (path, list, new) in [
        ("/schedules", "schedules", schedule),
        ("/webhooks", "endpoints", inbound),
        ("/webhook-endpoints", "endpoints", outbound),
    ] {
        let one = format!("{path}/{}", new["name"].as_str().unwrap());
        assert_eq!(api.post(path, new).await.ok()["created_by"], "key test", "{path}");
        assert_eq!(api.get(path).await.ok()[list][0]["created_by"], "key test", "{path}");
        assert_eq!(api.get(&one).await.ok()["created_by"], "key test", "{one}");
    }
    assert_eq!(api.post("/workflows/ship/disable", json!({})).await.ok()["applied_by"], "key test");
    let revoked = identity["identity"].as_str().unwrap();
    let revoked = api.send("DELETE", &format!("/api/v1/worker-identities/{revoked}"), json!({})).await.ok();
    assert_eq!(revoked["revoked_by"], "key test", "{revoked}");
    assert_eq!(api.get("/me").await.ok()["key"], "test");
    let mut logged = json!({});
    for _ in 0..200 {
        logged = api.get("/audit?type=user.created").await.body;
        if logged["entries"].as_array().is_some_and(|entries| !entries.is_empty()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(logged["entries"][0]["opened"]["actor"], "key test", "{logged}");
    api.end().await;
}

/// An admin of one workspace is told nothing of the keys of others.
#[tokio::test(start_paused = true)]
async fn a_confined_key_is_not_told_the_names_of_keys_elsewhere() {
    let api = Api::new().await;
    let confined = json!({ "name": "red", "roles": ["admin"], "workspace": "red" });
    let red = api.with_key(&api.post("/keys", confined).await.text("text"));
    let listed = red.get("/keys").await.ok();
    let by = listed["keys"][0]["created_by"].as_str().unwrap();
    assert!(by.starts_with("key_"), "{listed}");
    api.end().await;
}
