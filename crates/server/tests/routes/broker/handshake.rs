//! Who gets leave to use the broker, and who does not.

use interlock_core::tenant::identity::Role;
use serde_json::{Value, json};

use super::redis_server::RedisServer;
use super::{BrokerServer, hello};

#[tokio::test]
async fn only_workers_get_leave() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    for (role, status) in [(Role::Viewer, 403), (Role::Operator, 403), (Role::Admin, 403), (Role::Worker, 200)] {
        let (_, key) = served.key(role).await;
        let answer = served.handshake(&key).await;
        assert_eq!(answer.status(), status, "{role:?}");
    }
    assert_eq!(served.handshake("ilk_nobody").await.status(), 401);
    let (_, key) = served.key(Role::Worker).await;
    let ticket: Value = served.handshake(&key).await.json().await.unwrap();
    for field in ["ticket", "answers", "calls", "channel"] {
        let text = ticket[field].as_str().unwrap();
        assert!(!text.contains(&key) && !text.contains(ticket["key"].as_str().unwrap()), "{field}: {text}");
    }
    served.server.end().await;
}

/// A key that was revoked gets nothing more done with leave that it got before.
#[tokio::test]
async fn a_revoked_key_is_refused_at_once() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (id, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    assert_eq!(raw.call("register", hello()).await.0, 200);
    let (_, admin) = served.key(Role::Admin).await;
    let url = format!("{}/api/v1/keys/{id}", served.url());
    let revoked = reqwest::Client::new().delete(url).bearer_auth(admin).send().await.unwrap();
    assert!(revoked.status().is_success(), "{}", revoked.status());
    let (status, problem) = raw.call("register", hello()).await;
    assert_eq!((status, &problem["code"]), (401, &json!("UNAUTHORIZED")), "{problem}");
    assert_eq!(served.handshake(&key).await.status(), 401);
    served.server.end().await;
}

#[tokio::test]
async fn a_tenant_that_has_switched_it_off_uses_none() {
    let redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    let raw = served.raw(&redis.url(), &key).await;
    assert_eq!(raw.call("register", hello()).await.0, 200);
    let mut row = served.server.engine.store().tenant(served.tenant).await.unwrap().unwrap();
    row.settings.worker_broker = false;
    served.server.engine.tenants().put(row).await.unwrap();
    let (status, problem) = raw.call("register", hello()).await;
    assert_eq!((status, &problem["code"]), (403, &json!("BROKER_DISABLED")), "{problem}");
    let refused: Value = served.handshake(&key).await.json().await.unwrap();
    assert_eq!(refused["code"], "BROKER_DISABLED");
    served.server.end().await;
}

#[tokio::test]
async fn a_broker_that_is_not_reached_is_told_and_stops_nobody() {
    let mut redis = RedisServer::start().await;
    let served = BrokerServer::by(&redis.url()).await;
    let (_, key) = served.key(Role::Worker).await;
    redis.kill().await;
    served.until_ready("degraded").await;
    let refused: Value = served.handshake(&key).await.json().await.unwrap();
    assert_eq!(refused["code"], "BROKER_UNAVAILABLE");
    redis.restart().await;
    served.until_ready("ready").await;
    let raw = served.raw(&redis.url(), &key).await;
    assert_eq!(raw.call("register", hello()).await.0, 200);
    served.server.end().await;
}
