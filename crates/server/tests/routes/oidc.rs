//! Signing in by a real identity provider (npm's `oidc-provider`, on loopback), as a browser would: to the provider, its
//! forms, and back. `scripts/need oidc-provider` installs it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use interlock_core::tenant::identity::Role;
use interlock_core::time::Millis;
use interlock_engine::audit::read::{AuditFilter, AuditQuery};
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_server::identity::oidc::{OidcOptions, Provider};
use interlock_server::{ServerOptions, router};
use interlock_store::{ChangeUser, UserRow};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::harness;

const PUBLIC: &str = "https://interlock.example";
const CLIENT: &str = "interlock";
const CLIENT_SECRET: &str = "shared by the two of them";

/// The provider, our server beside it, and a browser that knows both.
struct World {
    process: Child,
    engine: interlock_engine::Engine,
    tenant: interlock_core::ids::TenantId,
    router: axum::Router,
    database: String,
}

/// Where a browser was sent, with the note that it carries for our server.
struct Departure {
    location: String,
    note: String,
}

/// How our server answers the browser that comes back.
struct Arrival {
    status: StatusCode,
    page: String,
    session: Option<String>,
    next: Option<String>,
}

impl World {
    async fn new(configure: impl FnOnce(&mut OidcOptions)) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oidc");
        let installed = folder.join("node_modules/oidc-provider").exists();
        assert!(installed, "npm's oidc-provider is not installed: run scripts/need oidc-provider");
        let accounts = json!({
            "ada": { "name": "Ada L.", "preferred_username": "ada", "email": "ada@example.org", "groups": ["sre", "chess"] },
            "bob": { "preferred_username": "bob", "groups": ["chess"] },
            "mallory": { "preferred_username": "mallory", "groups": ["sre"] },
        });
        let mut process = Command::new("node")
            .arg("provider.mjs")
            .current_dir(&folder)
            .env("ACCOUNTS", accounts.to_string())
            .env("CLIENT_ID", CLIENT)
            .env("CLIENT_SECRET", CLIENT_SECRET)
            .env("REDIRECT_URI", format!("{PUBLIC}/auth/oidc/callback"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("`node` is needed for this test, and is not on this machine");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let issuer = lines.next_line().await.unwrap().expect("the provider says where it is");
        // Whatever else it prints is read, so that its output does not block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let (engine, [tenant, _], database) = harness::engine().await;
        let outbound = OutboundOptions { open: vec!["127.0.0.1".parse().unwrap()], ..OutboundOptions::default() };
        let mut oidc = OidcOptions::new(issuer, CLIENT, tenant);
        oidc.client_secret = Some(CLIENT_SECRET.to_owned());
        oidc.roles.insert("sre".to_owned(), [Role::Operator, Role::Approver].into_iter().collect());
        configure(&mut oidc);
        let options = ServerOptions {
            oidc: Some(Provider::new(oidc, Outbound::new(outbound).unwrap())),
            public_url: Some(PUBLIC.to_owned()),
            ..ServerOptions::new(tenant)
        };
        let router = router(engine.clone(), &options, CancellationToken::new());
        Self { process, engine, tenant, router, database }
    }

    async fn ask(&self, path: &str, cookies: &str) -> (axum::http::response::Parts, String) {
        let request = Request::get(path).header(header::HOST, "interlock.example").header(header::COOKIE, cookies);
        let response = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let page = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
        (parts, page)
    }

    async fn depart(&self) -> Departure {
        let (parts, page) = self.ask("/auth/oidc/start?next=/runs", "").await;
        assert_eq!(parts.status, StatusCode::SEE_OTHER, "{page}");
        let note = parts.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        Departure { location: parts.headers[header::LOCATION].to_str().unwrap().to_owned(), note }
    }

    /// Comes back with what the provider has sent along.
    async fn arrive(&self, address: &str, note: &str) -> Arrival {
        let path = address.strip_prefix(PUBLIC).expect("the provider sends people back to us");
        let (parts, page) = self.ask(path, note).await;
        let cookies = parts.headers.get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap());
        let session =
            cookies.map(|cookie| cookie.split(';').next().unwrap()).find(|cookie| cookie.contains("_session="));
        Arrival {
            status: parts.status,
            page,
            session: session.map(str::to_owned),
            next: parts.headers.get(header::LOCATION).map(|value| value.to_str().unwrap().to_owned()),
        }
    }

    /// The whole way there and back.
    async fn sign_in(&self, name: &str) -> Arrival {
        let Departure { location, note } = self.depart().await;
        self.arrive(&at_the_provider(&location, name).await, &note).await
    }

    /// What the audit log tells of the sign-ins that were refused, once one is there.
    async fn refused(&self) -> Vec<serde_json::Value> {
        let filter = AuditFilter { kind: Some("login.failed".into()), ..AuditFilter::default() };
        let query = AuditQuery { number: None, newest_first: true, from: None, limit: 10, filter };
        let looking = async {
            loop {
                let found = self.engine.audit().entries(self.tenant, &query).await.unwrap().entries;
                if !found.is_empty() {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_mins(1), looking).await.expect("the refusal is in the log");
        let details = found.into_iter().filter_map(|logged| logged.opened?.details);
        details.map(|details| serde_json::from_str(&details).unwrap()).collect()
    }

    async fn account(&self, name: &str) -> Option<UserRow> {
        self.engine.store().user_named(self.tenant, name).await.unwrap()
    }

    async fn end(mut self) {
        self.process.kill().await.unwrap();
        self.engine.stop().await;
        self.engine.store().clone().close().await;
        interlock_store::forget_memory(&self.database);
    }
}

/// What a person does at the provider: signs in, agrees, and is sent back to us. Answers where to.
async fn at_the_provider(location: &str, name: &str) -> String {
    let browser = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let origin = location.split("/auth").next().unwrap();
    let mut cookies: BTreeMap<String, String> = BTreeMap::new();
    let mut request = browser.get(location);
    for _ in 0..20 {
        let jar: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let answer = request.header("cookie", jar.join("; ")).send().await.unwrap();
        for cookie in answer.headers().get_all("set-cookie") {
            let pair = cookie.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            cookies.insert(name.to_owned(), value.to_owned());
        }
        if let Some(next) = answer.headers().get("location") {
            let next = next.to_str().unwrap();
            if next.starts_with(PUBLIC) {
                return next.to_owned();
            }
            let next = if next.starts_with('/') { format!("{origin}{next}") } else { next.to_owned() };
            request = browser.get(next);
            continue;
        }
        let (url, page) = (answer.url().clone(), answer.text().await.unwrap());
        let fields = if page.contains("name=\"login\"") {
            format!("prompt=login&login={name}&password=x")
        } else {
            "prompt=consent".to_owned()
        };
        assert!(page.contains("<form"), "{page}");
        let form = "application/x-www-form-urlencoded";
        request = browser.post(url).header("content-type", form).body(fields);
    }
    panic!("the provider never sends anybody back");
}

#[tokio::test]
async fn somebody_signs_in_by_a_real_provider_and_has_the_roles_of_their_groups() {
    let world = World::new(|_| ()).await;
    let arrival = world.sign_in("ada").await;
    assert_eq!((arrival.status, arrival.next.as_deref()), (StatusCode::SEE_OTHER, Some("/runs")), "{}", arrival.page);
    let session = arrival.session.expect("a session's cookie");
    let (parts, me) = world.ask("/api/v1/me", &session).await;
    let me: serde_json::Value = serde_json::from_str(&me).unwrap();
    assert_eq!(parts.status, StatusCode::OK, "{me}");
    assert_eq!((&me["person"], &me["roles"]), (&json!("ada"), &json!(["operator", "approver"])));
    assert_eq!(me["groups"], json!(["sre", "chess"]), "groups without a role are groups all the same");
    let ada = world.account("ada").await.unwrap();
    assert_eq!((ada.email.as_deref(), ada.display_name.as_deref()), (Some("ada@example.org"), Some("Ada L.")));

    // The second time it is the same person.
    assert!(world.sign_in("ada").await.session.is_some());
    assert_eq!(world.account("ada").await.unwrap().id, ada.id);
    assert!(world.account("ada.2").await.is_none());
    world.end().await;
}

/// Where two people must agree, an account whose groups the provider changed today is not one of them.
#[tokio::test]
async fn what_the_provider_changes_is_a_change_of_access() {
    let world = World::new(|_| ()).await;
    assert!(world.sign_in("ada").await.session.is_some());
    let ada = world.account("ada").await.unwrap();
    let reordered = UserRow { groups: vec!["chess".into(), "sre".into()], ..ada.clone() };
    world.engine.store().write(ChangeUser { read: ada.clone(), user: reordered }).await.unwrap();
    assert!(world.sign_in("ada").await.session.is_some());
    assert_eq!(world.account("ada").await.unwrap().access_changed_at, None, "it has named the same in another order");

    let ada = world.account("ada").await.unwrap();
    let fewer = UserRow { groups: vec!["chess".into()], ..ada.clone() };
    world.engine.store().write(ChangeUser { read: ada, user: fewer }).await.unwrap();
    assert!(world.sign_in("ada").await.session.is_some());
    let ada = world.account("ada").await.unwrap();
    assert_eq!(ada.groups, ["sre", "chess"]);
    let changes = interlock_server::identity::access::changed_lately(&ada, world.engine.now());
    let issuer = ada.issuer.as_deref().unwrap();
    assert!(changes.len() == 2 && changes.iter().all(|change| change.by == issuer), "{changes:?}");
    assert!(changes.iter().any(|change| Some(change.at) == ada.access_changed_at), "{changes:?}");
    world.end().await;
}

/// A provider at which a person has been signed in for days vouches for them at once: that is no sign-in a moment ago.
#[tokio::test]
async fn a_sign_in_counts_from_the_providers_own() {
    let world = World::new(|_| ()).await;
    let session = world.sign_in("ada").await.session.unwrap();
    let ada = world.account("ada").await.unwrap();
    let proven = || async { world.engine.store().proven_at(world.tenant, ada.id, world.engine.now()).await.unwrap() };
    let (first, now) = (proven().await.unwrap(), world.engine.now());
    assert!(now.since(first) >= Millis::from_mins(15), "nobody asked the provider when it was: {first:?}");
    // A person who comes back with a session must sign in anew at the provider, which says when.
    let (parts, _) = world.ask("/auth/oidc/start?next=/runs", &session).await;
    let note = parts.headers[header::SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
    let location = parts.headers[header::LOCATION].to_str().unwrap().to_owned();
    assert!(location.contains("&max_age=300"), "{location}");
    let again = world.arrive(&at_the_provider(&location, "ada").await, &note).await;
    assert!(again.session.is_some(), "{}", again.page);
    let (second, now) = (proven().await.unwrap(), world.engine.now());
    assert!(now.since(second) < Millis::from_mins(1), "{second:?}");
    world.end().await;
}

#[tokio::test]
async fn whoever_has_no_role_stays_out_unless_everybody_has_one() {
    let world = World::new(|_| ()).await;
    // Anybody can bring a code that the provider does not take: that fills no log.
    let Departure { location, note } = world.depart().await;
    let back = at_the_provider(&location, "ada").await.replacen("code=", "code=x", 1);
    assert_eq!(world.arrive(&back, &note).await.status, StatusCode::FORBIDDEN);
    let arrival = world.sign_in("bob").await;
    assert_eq!((arrival.status, arrival.session), (StatusCode::FORBIDDEN, None));
    assert!(arrival.page.contains("none of the groups that have a role"), "{}", arrival.page);
    let refused = world.refused().await;
    assert!(refused.len() == 1 && refused[0]["name"] == "bob" && refused[0]["why"].is_string(), "{refused:?}");
    world.end().await;

    let open = World::new(|oidc| oidc.default_roles = [Role::Viewer].into_iter().collect()).await;
    assert!(open.sign_in("bob").await.session.is_some());
    assert!(open.account("bob").await.unwrap().roles.contains(Role::Viewer));
    open.end().await;
}

#[tokio::test]
async fn an_answer_that_is_not_to_our_question_lets_nobody_in() {
    let world = World::new(|_| ()).await;
    let refused = |arrival: Arrival, says: &str| {
        assert!(arrival.session.is_none() && arrival.status.as_u16() >= 400, "{}", arrival.page);
        assert!(arrival.page.contains(says), "no `{says}` in {}", arrival.page);
        let unavailable = arrival.status == StatusCode::BAD_GATEWAY;
        let code = if unavailable { "PROVIDER_UNAVAILABLE" } else { "PROVIDER_REFUSED" };
        assert!(arrival.page.contains(code), "no `{code}` in {}", arrival.page);
    };

    // Another state, another browser, and a note that the server has not sealed.
    let Departure { location, note } = world.depart().await;
    let back = at_the_provider(&location, "ada").await;
    let (path, query) = back.split_once('?').unwrap();
    let others: Vec<_> = query.split('&').filter(|pair| !pair.starts_with("state=")).collect();
    let stateless = format!("{path}?{}&state=another", others.join("&"));
    refused(world.arrive(&stateless, &note).await, "not begun in this browser");
    refused(world.arrive(&back, "").await, "not begun in this browser");
    refused(world.arrive(&back, "interlock_oidc=a.b.c").await, "not begun in this browser");

    // The token answers another nonce than the one that the server sent.
    let changed = |location: &str, name: &str, value: &str| {
        let (path, query) = location.split_once('?').unwrap();
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((key, _)) if key == name => format!("{name}={value}"),
            _ => pair.to_owned(),
        });
        format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
    };
    let Departure { location, note } = world.depart().await;
    let back = at_the_provider(&changed(&location, "nonce", "another"), "ada").await;
    refused(world.arrive(&back, &note).await, "cannot be trusted");

    // The challenge is not our verifier's: the provider itself refuses the code.
    let Departure { location, note } = world.depart().await;
    let back = at_the_provider(&changed(&location, "code_challenge", &"A".repeat(43)), "ada").await;
    let over = world.arrive(&back, &note).await;
    assert_eq!(over.status, StatusCode::FORBIDDEN);
    refused(over, "start again");

    // The token is the provider's, and made for another client.
    refused(world.sign_in("mallory").await, "cannot be trusted");
    assert!(world.account("mallory").await.is_none() && world.account("ada").await.is_none());
    world.end().await;
}
