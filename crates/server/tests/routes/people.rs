//! People: the first admin's link, signing in, cookies and what guards them, invites, tokens for sockets.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, header};
use interlock_engine::payloads::Objects;
use interlock_store::{CommitFault, FaultFrom};
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse, engine_under, plan, task};

const PASSWORD: &str = "correct horse battery";

/// A browser: it keeps the cookie.
struct Browser<'a> {
    api: &'a Api,
    cookie: String,
    csrf: String,
}

impl Browser<'_> {
    async fn ask(&self, method: &str, path: &str, body: Value, headers: &[(&str, &str)]) -> ApiResponse {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost:8420")
            .header(header::COOKIE, format!("theme=dark; {}", self.cookie))
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if method == "GET" { Body::empty() } else { Body::from(body.to_string()) };
        self.api.ask(request.body(body).unwrap()).await
    }

    async fn write(&self, method: &str, path: &str, body: Value) -> ApiResponse {
        self.ask(method, path, body, &[("x-interlock-csrf", &self.csrf), ("origin", "http://localhost:8420")]).await
    }
}

fn cookie_of(answer: &ApiResponse) -> String {
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && cookie.contains("Path=/"), "{cookie}");
    cookie.split(';').next().unwrap().to_owned()
}

async fn log_in(api: &Api, name: &str, password: &str) -> ApiResponse {
    let request = Request::post("/api/v1/auth/login")
        .header(header::HOST, "localhost:8420")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(json!({ "name": name, "password": password }).to_string()));
    api.ask(request.unwrap()).await
}

/// Signed in as a person with these roles.
async fn browser<'a>(api: &'a Api, name: &str, roles: Value, groups: Value) -> Browser<'a> {
    let body = json!({ "name": name, "roles": roles, "groups": groups, "password": PASSWORD });
    api.post("/users", body).await.ok();
    let answer = log_in(api, name, PASSWORD).await;
    let cookie = cookie_of(&answer);
    let csrf = answer.text("csrf");
    Browser { api, cookie, csrf }
}

async fn form(api: &Api, path: &str, body: String) -> ApiResponse {
    let request = Request::post(path)
        .header(header::HOST, "localhost:8420")
        .header(header::ORIGIN, "http://localhost:8420")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(body));
    api.ask(request.unwrap()).await
}

async fn page(api: &Api, path: &str) -> ApiResponse {
    let request = Request::get(path).header(header::HOST, "localhost:8420").body(Body::empty());
    api.ask(request.unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_link_works_when_the_database_is_back() {
    let away = Arc::new(FaultFrom::new(CommitFault::Lost));
    let (engine, tenants, database) = engine_under(Arc::<FaultFrom>::clone(&away), Objects::memory()).await;
    let api = Api::of(engine, tenants, database).await;
    let token = api.identity().invite_first_admin(api.tenant).await.unwrap().token;
    let filled = format!("token={token}&name=ada&password={0}&again={0}", "aaaaaaaaaaaaaa");
    away.now();
    // Something waits; what comes when the outage has lasted is refused at once.
    let waiting = api.post("/runs", json!({ "plan": plan(json!([task("a")])) }));
    let _ = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    let refused = form(&api, "/setup", filled.clone()).await;
    assert_eq!(refused.status, 503);
    assert!(refused.body.as_str().unwrap().contains(&token), "the form is there to be sent again: {}", refused.body);

    away.never();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(form(&api, "/setup", filled.clone()).await.status, 303);
    assert_eq!(form(&api, "/setup", filled).await.status, 410);
    api.end().await;
}

#[tokio::test]
async fn the_first_admins_link_works_once() {
    let api = Api::new().await;
    let token = api.identity().invite_first_admin(api.tenant).await.unwrap().token;
    let shown = page(&api, &format!("/setup?token={token}")).await;
    assert_eq!(shown.status, 200);
    assert!(shown.body.as_str().unwrap().contains("first admin"), "{}", shown.body);
    assert_eq!(shown.headers[header::REFERRER_POLICY], "same-origin");
    assert!(shown.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("frame-ancestors 'none'"));

    let fill = |name: &str, password: &str, again: &str| {
        format!("token={token}&name={name}&password={password}&again={again}")
    };
    let differ = form(&api, "/setup", fill("ada", "aaaaaaaaaaaaaa", "bbbbbbbbbbbbbb")).await;
    assert_eq!(differ.status, 422);
    let short = form(&api, "/setup", fill("ada", "short", "short")).await;
    assert!(short.body.as_str().unwrap().contains("at least 12 characters"), "{}", short.body);
    let odd = form(&api, "/setup", fill("%3Cb%3E", "aaaaaaaaaaaaaa", "aaaaaaaaaaaaaa")).await;
    assert_eq!(odd.status, 422);
    assert!(!odd.body.as_str().unwrap().contains("<b>"), "what was typed is made harmless");

    let done = form(&api, "/setup", fill("ada", "aaaaaaaaaaaaaa", "aaaaaaaaaaaaaa")).await;
    assert_eq!((done.status.as_u16(), &done.headers[header::LOCATION]), (303, &"/".parse().unwrap()));
    let ada = Browser { api: &api, cookie: cookie_of(&done), csrf: String::new() };
    let me = ada.ask("GET", "/api/v1/me", Value::Null, &[]).await.ok();
    assert_eq!((&me["person"], &me["roles"], &me["installation"]), (&json!("ada"), &json!(["admin"]), &json!(true)));

    let again = form(&api, "/setup", fill("eve", "aaaaaaaaaaaaaa", "aaaaaaaaaaaaaa")).await;
    assert_eq!(again.status, 410);
    assert!(again.body.as_str().unwrap().contains("INVITE_OVER"), "{}", again.body);
    // Another link that was printed before is worth nothing either: there is an admin now.
    let late = api.identity().invite_first_admin(api.tenant).await.unwrap().token;
    assert_eq!(page(&api, &format!("/setup?token={late}")).await.status, 410);
    api.end().await;
}

#[tokio::test]
async fn signing_in_and_out() {
    let api = Api::new().await;
    let ada = browser(&api, "ada", json!(["operator"]), json!(["sre"])).await;
    let me = ada.ask("GET", "/api/v1/me", Value::Null, &[]).await.ok();
    assert_eq!((&me["person"], &me["groups"], &me["csrf"]), (&json!("ada"), &json!(["sre"]), &json!(ada.csrf)));
    let wrong = log_in(&api, "ada", "another password").await;
    let nobody = log_in(&api, "eve", "another password").await;
    assert_eq!(wrong.problem(), (401, "LOGIN_FAILED"));
    assert_eq!(wrong.body, nobody.body, "whether there is such a person cannot be told");
    let account = ada.ask("GET", "/account", Value::Null, &[]).await;
    assert!(account.body.as_str().unwrap().contains("sre"), "{}", account.body);

    assert_eq!(ada.write("POST", "/api/v1/auth/logout", json!({})).await.status, 204);
    assert_eq!(ada.ask("GET", "/api/v1/me", Value::Null, &[]).await.problem(), (401, "UNAUTHORIZED"));
    assert_eq!(ada.ask("GET", "/account", Value::Null, &[]).await.status, 303);
    let bare = ada.ask("GET", "/", Value::Null, &[]).await;
    assert_eq!((bare.status.as_u16(), &bare.headers[header::LOCATION]), (303, &"/login".parse().unwrap()));
    api.end().await;
}

#[tokio::test]
async fn the_console_is_for_people_who_are_signed_in() {
    let api = Api::new().await;
    let stranger = page(&api, "/runs/run_1?tab=events").await;
    let back = "/login?next=%2Fruns%2Frun_1%3Ftab%3Devents".parse().unwrap();
    assert_eq!((stranger.status.as_u16(), &stranger.headers[header::LOCATION]), (303, &back));
    let ada = browser(&api, "ada", json!(["viewer"]), json!([])).await;
    for address in ["/", "/runs", "/runs/run_1", "/approvals", "/settings/keys"] {
        let shown = ada.ask("GET", address, Value::Null, &[]).await;
        assert_eq!(shown.status, 200, "{address}");
        let policy = shown.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        let strict = policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'");
        assert!(strict && !policy.contains("unsafe"), "{address}: {policy}");
    }
    for address in ["/nothing", "/runs-of-others", "/assets/none.js", "/index.html"] {
        let absent = ada.ask("GET", address, Value::Null, &[]).await;
        assert_eq!(absent.problem(), (404, "ROUTE_NOT_FOUND"), "{address}");
    }
    assert_eq!(ada.write("POST", "/runs", json!({})).await.problem(), (404, "ROUTE_NOT_FOUND"));
    api.end().await;
}

#[tokio::test]
async fn a_cookie_alone_changes_nothing() {
    let api = Api::new().await;
    let ada = browser(&api, "ada", json!(["admin"]), json!([])).await;
    let path = "/api/v1/signals";
    let signal = json!({ "type": "go", "key": "k" });
    let bare = ada.ask("POST", path, signal.clone(), &[]).await;
    assert_eq!(bare.problem(), (403, "CSRF_INVALID"));
    let csrf = ("x-interlock-csrf", ada.csrf.as_str());
    let foreign = ada.ask("POST", path, signal.clone(), &[csrf, ("origin", "https://evil.example")]).await;
    assert_eq!(foreign.problem(), (403, "ORIGIN_REFUSED"));
    let sent_across = ada.ask("POST", path, signal.clone(), &[csrf, ("sec-fetch-site", "cross-site")]).await;
    assert_eq!(sent_across.problem(), (403, "ORIGIN_REFUSED"));
    // A page of another site opens no stream either; a plain read it could not see the answer of.
    let run = api.start(json!([task("a")])).await;
    for stream in ["/api/v1/events/stream".to_owned(), format!("/api/v1/runs/{run}/events/stream")] {
        for header in [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")] {
            let opened = ada.ask("GET", &stream, Value::Null, &[header]).await;
            assert_eq!(opened.problem(), (403, "ORIGIN_REFUSED"), "{stream} {header:?}");
        }
    }
    let rebound = [csrf, ("origin", "http://localhost:8420")];
    assert_eq!(ada.ask("POST", path, signal, &rebound).await.status, 201);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn guessing_is_slowed_down() {
    let api = Api::new().await;
    browser(&api, "ada", json!(["viewer"]), json!([])).await;
    for _ in 0..5 {
        assert_eq!(log_in(&api, "ada", "wrong password").await.problem(), (401, "LOGIN_FAILED"));
    }
    let throttled = log_in(&api, "ada", PASSWORD).await;
    assert_eq!(throttled.problem(), (429, "LOGIN_THROTTLED"));
    assert!(throttled.headers.contains_key(header::RETRY_AFTER));
    // A name that no account can have is not remembered, and a right password makes up for wrong ones.
    let endless = "a".repeat(1_000);
    for _ in 0..7 {
        assert_eq!(log_in(&api, &endless, "wrong password").await.problem(), (401, "LOGIN_FAILED"));
    }
    browser(&api, "bob", json!(["viewer"]), json!([])).await;
    for _ in 0..3 {
        for _ in 0..4 {
            assert_eq!(log_in(&api, "bob", "wrong password").await.problem(), (401, "LOGIN_FAILED"));
        }
        log_in(&api, "bob", PASSWORD).await.ok();
    }
    api.end().await;
}

#[tokio::test]
async fn a_disabled_person_is_nobody_at_once() {
    let api = Api::new().await;
    let ada = browser(&api, "ada", json!(["viewer"]), json!([])).await;
    let user = api.get("/users").await.ok()["users"][0]["user"].as_str().unwrap().to_owned();
    api.send("PATCH", &format!("/api/v1/users/{user}"), json!({ "disabled": true })).await.ok();
    assert_eq!(ada.ask("GET", "/api/v1/me", Value::Null, &[]).await.problem(), (401, "UNAUTHORIZED"));
    assert_eq!(log_in(&api, "ada", PASSWORD).await.problem(), (401, "LOGIN_FAILED"));
    api.end().await;
}

#[tokio::test]
async fn an_invited_person_chooses_a_password() {
    let api = Api::new().await;
    let user = api.post("/users", json!({ "name": "bob", "roles": ["approver"] })).await;
    assert_eq!(user.body["has_password"], false);
    let path = format!("/users/{}/invite", user.text("user"));
    let invite = api.post(&path, json!({})).await;
    let link = invite.text("link");
    let token = link.split("token=").nth(1).unwrap();
    assert!(link.starts_with("http://localhost/setup?"), "{link}");
    let done = form(&api, "/setup", format!("token={token}&password={0}&again={0}", "aaaaaaaaaaaaaa")).await;
    assert_eq!(done.status, 303);
    let bob = Browser { api: &api, cookie: cookie_of(&done), csrf: String::new() };
    let me = bob.ask("GET", "/api/v1/me", Value::Null, &[]).await.ok();
    assert_eq!((&me["person"], &me["installation"]), (&json!("bob"), &json!(false)));
    let twice = api.post("/users", json!({ "name": "bob", "roles": [] })).await;
    assert_eq!(twice.problem(), (409, "USER_EXISTS"));
    api.end().await;
}

#[tokio::test]
async fn ones_own_password_needs_the_old_one() {
    let api = Api::new().await;
    let ada = browser(&api, "ada", json!(["viewer"]), json!([])).await;
    let user = api.get("/users").await.ok()["users"][0]["user"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/users/{user}/password");
    let blind = ada.write("POST", &path, json!({ "password": "another good password" })).await;
    assert_eq!(blind.problem(), (422, "INPUT_INVALID"));
    let body = json!({ "password": "another good password", "old_password": PASSWORD });
    assert_eq!(ada.write("POST", &path, body).await.status, 204);
    assert_eq!(ada.ask("GET", "/api/v1/me", Value::Null, &[]).await.status, 401, "visits end with the password");
    assert_eq!(log_in(&api, "ada", "another good password").await.status, 200);
    api.end().await;
}

/// Names stand in votes and histories: none may be taken for another's, or for something else's id.
#[tokio::test(start_paused = true)]
async fn a_name_cannot_be_taken_for_anothers() {
    let api = Api::new().await;
    api.post("/users", json!({ "name": "ada@example.org", "roles": ["viewer"] })).await.ok();
    let alike = api.post("/users", json!({ "name": "Ada@Example.org", "roles": ["approver"] })).await;
    assert_eq!(alike.problem(), (409, "USER_EXISTS"));
    let key = api.get("/keys").await.ok()["keys"][0]["key"].as_str().unwrap().to_owned();
    for name in [key.as_str(), "run_0190a0b0c0d07000800000000000000a"] {
        let refused = api.post("/users", json!({ "name": name, "roles": ["approver"] })).await;
        assert_eq!(refused.problem(), (422, "INPUT_INVALID"), "{name}");
    }
    api.post("/users", json!({ "name": "bob_smith", "roles": ["viewer"] })).await.ok();
    api.end().await;
}
