//! Two servers on one database: what they count, they count together, and what one has sealed only its like can open.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use interlock_core::ids::{ServerId, TenantId};
use interlock_core::tenant::identity::Role;
use interlock_engine::{Engine, EngineOptions};
use interlock_server::identity::NewKey;
use interlock_server::{ServerOptions, ServerSecret, router};
use interlock_store::{CountLogin, Options, Store, StoreUrl, Tenant};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use uuid::Uuid;

use crate::harness;

const PASSWORD: &str = "correct horse battery";

struct Server {
    engine: Engine,
    router: Router,
}

impl Server {
    async fn open(url: &StoreUrl, tenant: TenantId, secret: ServerSecret) -> Self {
        let options = EngineOptions { vault: Some(secret.vault()), ..harness::equipped() };
        let store = Store::open(url, Options::new(ServerId(options.ids.fresh()))).await.unwrap();
        let engine = Engine::open(store, options).await.unwrap();
        engine.tenants().put(Tenant::new(tenant, "one", engine.now())).await.unwrap();
        let options = ServerOptions { secret, ..ServerOptions::new(tenant) };
        let router = router(engine.clone(), &options, CancellationToken::new());
        Self { engine, router }
    }

    async fn post(&self, path: &str, key: Option<&str>, body: Value) -> (u16, Value) {
        let mut request = Request::post(format!("/api/v1{path}"))
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body.to_string())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn signs_in(&self, name: &str, password: &str) -> u16 {
        self.post("/auth/login", None, json!({ "name": name, "password": password })).await.0
    }

    async fn close(self) {
        self.engine.stop().await;
        self.engine.store().clone().close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_are_counted_over_all_servers() {
    let url = harness::postgres("guesses").await;
    let tenant = TenantId(Uuid::from_u128(1));
    let secret = ServerOptions::new(tenant).secret;
    let (one, two) =
        (Server::open(&url, tenant, secret.clone()).await, Server::open(&url, tenant, secret.clone()).await);
    let new = NewKey::new(tenant, "admin", [Role::Admin].into_iter().collect());
    let key = harness::key(&one.engine, &secret, new).await;
    for name in ["ada", "bob"] {
        let body = json!({ "name": name, "roles": ["viewer"], "password": PASSWORD });
        assert_eq!(one.post("/users", Some(&key), body).await.0, 201);
    }

    for server in [&one, &two, &one, &two] {
        assert_eq!(server.signs_in("ada", "wrong password").await, 401);
    }
    assert_eq!(two.signs_in("ada", PASSWORD).await, 200, "the right one is let in, and makes up for the others");
    for server in [&one, &two, &one, &two, &one] {
        assert_eq!(server.signs_in("ada", "wrong password").await, 401);
    }
    let failures = one.engine.store().login_failures(tenant, "ada").await.unwrap().unwrap();
    assert_eq!(failures.count, 5, "of both servers");
    // Five more, so that the account's wait is longer than any stall of this machine.
    for _ in 0..5 {
        let (at, afresh_before) = (one.engine.now(), failures.last_at);
        let more = CountLogin { tenant, name: "ada".to_owned(), at, afresh_before };
        one.engine.store().write(more).await.unwrap();
    }
    let (status, problem) = two.post("/auth/login", None, json!({ "name": "ada", "password": PASSWORD })).await;
    assert_eq!((status, &problem["code"]), (429, &json!("LOGIN_THROTTLED")), "{problem}");
    assert_eq!(one.signs_in("ada", PASSWORD).await, 429);
    assert_eq!(two.signs_in("bob", PASSWORD).await, 200, "others are none the worse for it");

    // All at once on both servers.
    let began = Instant::now();
    let guesses = (0..24).map(|number| {
        let server = if number % 2 == 0 { &one } else { &two };
        server.signs_in("bob", "wrong password")
    });
    let answers = futures::future::join_all(guesses).await;
    let looked_at = answers.iter().filter(|status| **status == 401).count();
    // Where that took seconds, waits have ended meanwhile: of one second, then of two, then of four.
    let waits_ended = (began.elapsed().as_secs() + 1).ilog2() as usize;
    let is_bounded = looked_at <= 5 + waits_ended;
    assert!(is_bounded && answers.iter().all(|status| matches!(status, 401 | 429)), "{answers:?}");
    one.close().await;
    two.close().await;
}

#[tokio::test]
async fn what_another_secret_sealed_cannot_be_opened() {
    let url = StoreUrl::SqliteMemory("sealed".to_owned());
    let tenant = TenantId(Uuid::from_u128(1));
    let secret = ServerOptions::new(tenant).secret;
    let one = Server::open(&url, tenant, secret.clone()).await;
    let new = NewKey::new(tenant, "admin", [Role::Admin].into_iter().collect());
    let key = harness::key(&one.engine, &secret, new).await;
    let (status, made) = one.post("/webhooks", Some(&key), json!({ "name": "a", "source": "standard" })).await;
    assert_eq!(status, 201, "{made}");
    let path = made["path"].as_str().unwrap().strip_prefix("/api/v1").unwrap();
    assert_eq!(one.post(path, None, json!({})).await.0, 401, "not signed");
    one.close().await;

    let other = Server::open(&url, tenant, ServerOptions::new(tenant).secret).await;
    let (status, problem) = other.post(path, None, json!({})).await;
    assert_eq!((status, &problem["code"]), (503, &json!("SECRETS_UNAVAILABLE")), "{problem}");
    other.close().await;
    interlock_store::forget_memory("sealed");
}
