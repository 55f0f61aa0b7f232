//! Headers: a value that another tenant has used or been given means as little as one that no tenant has.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::tenant::identity::Permission;
use interlock_protocol::changes::CHANGE_HEADER;
use interlock_protocol::delegations;
use interlock_server::matrix::{IdPosition, Line, MATRIX, Thing};
use serde_json::json;

use super::names::{everything, valid, without_news};
use super::{Things, body, source};
use crate::approvals::Person;
use crate::harness::{Api, ApiResponse};
use crate::two_keys::{change_of, decide};

const TRACE: &str = "00-11111111111111111111111111111111-2222222222222222-01";
const OTHER_TRACE: &str = "00-33333333333333333333333333333333-4444444444444444-01";

/// A header, the other tenant's value for it, and a value that no tenant has.
struct Position {
    name: &'static str,
    theirs: String,
    nobodys: String,
    /// Whether the other tenant makes the same request with it first, so that there is something to be confused with.
    used: bool,
}

impl Position {
    fn new(name: &'static str, theirs: &str, nobodys: &str) -> Self {
        Self { name, theirs: theirs.to_owned(), nobodys: nobodys.to_owned(), used: false }
    }

    fn used(name: &'static str, theirs: &str, nobodys: &str) -> Self {
        Self { used: true, ..Self::new(name, theirs, nobodys) }
    }
}

/// The request of a line with the caller's own things everywhere, and one more header.
async fn ask(api: &Api, line: &Line, own: &Things, header: Option<(&str, &str)>, fresh: &str) -> ApiResponse {
    let mut path = line.path.to_owned();
    for (place, thing) in line.ids {
        if let IdPosition::Path(name) = place {
            path = path.replace(&format!("{{{name}}}"), own.get(*thing));
        }
    }
    let body = valid(line.path.trim_start_matches("/api/v1"), own, fresh).unwrap_or_else(|| body(line, own));
    let mut request = Request::builder()
        .method(line.method)
        .uri(path)
        .header(header::HOST, "localhost")
        .header(header::AUTHORIZATION, format!("Bearer {}", api.key))
        .header(header::CONTENT_TYPE, "application/json");
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let body = if line.method == "GET" { Body::empty() } else { Body::from(body.to_string()) };
    api.ask(request.body(body).unwrap()).await
}

/// What takes away what later requests would be about comes last.
fn takes_away(line: &Line) -> bool {
    let verbs = ["/cancel", "/disable", "/unregister", "/logout", "/rollback", "/skip", "/restart"];
    line.method == "DELETE" || verbs.iter().any(|verb| line.path.ends_with(verb))
}

#[tokio::test(start_paused = true)]
async fn another_tenants_headers_change_nothing() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let own = Things::of(&api, api.tenant, "ours").await;
    let foreign = Things::of(&other, api.other_tenant, "theirs").await;
    // The other tenant's workflow has more versions, so its tag is none of this tenant's.
    for step in ["b", "c", "d"] {
        let text = source(&foreign.workflow).replace("id: a", &format!("id: {step}"));
        other.post("/workflows", json!({ "source": text })).await.ok();
    }
    let eve = Person::in_tenant(&other, "two", "eve", json!(["admin", "operator"])).await;
    let positions = [
        Position::used("idempotency-key", "their-key", "nobodys-key"),
        Position::used("x-idempotency-key", "their-alias", "nobodys-alias"),
        Position::used("x-request-id", "their-request", "nobodys-request"),
        Position::used("traceparent", TRACE, OTHER_TRACE),
        Position::new("if-match", "\"4\"", "\"9\""),
        Position::new("if-none-match", "\"4\"", "\"9\""),
        Position::new("cookie", &eve.cookie, "interlock_session=ses_0.nonsense"),
        Position::new("x-interlock-csrf", &eve.csrf, "nobodys-csrf-token"),
        Position::new(CHANGE_HEADER, &foreign.change, &super::neighbour(&foreign.change)),
    ];
    // `frames` opens sockets; the metrics count the requests themselves.
    let mut lines: Vec<&Line> =
        MATRIX.iter().filter(|line| !line.path.starts_with("/ws/") && line.path != "/metrics").collect();
    lines.sort_by_key(|line| takes_away(line));
    let (mut tried, mut succeeded) = (0, 0);
    for line in lines {
        for (number, position) in positions.iter().enumerate() {
            // For a page the cookie is the credential, and the key beside it is nothing.
            let is_page = line.needs == Permission::Public && position.name == "cookie";
            if is_page || line.method == "GET" && position.used {
                continue;
            }
            let fresh = |who: &str| format!("fresh-{number}-{who}");
            // What a request changes it has changed before the two that are compared.
            ask(&api, line, &own, None, &fresh("before")).await;
            if position.used {
                ask(&other, line, &foreign, Some((position.name, &position.theirs)), &fresh("theirs")).await;
            }
            let mut answers = Vec::new();
            for (value, who) in [(&position.theirs, "known"), (&position.nobodys, "unknown")] {
                let answer = ask(&api, line, &own, Some((position.name, value)), &fresh(who)).await;
                let replayed = answer.headers.contains_key("idempotency-replayed");
                assert!(!answer.body.to_string().contains(&foreign.run), "{} {}", line.method, line.path);
                assert!(!answer.status.is_server_error(), "{} {}: {}", line.method, line.path, answer.body);
                succeeded += u32::from(answer.status.is_success());
                let (status, text) = without_news(&answer, [value, &fresh(who)]);
                // Lists show what other lines have made under the names of both.
                let text = text.replace(&fresh("unknown"), "NAME").replace(&fresh("known"), "NAME");
                answers.push(((status, text), replayed));
            }
            assert_eq!(answers[0], answers[1], "{} {}: `{}`", line.method, line.path, position.name);
            tried += 1;
        }
    }
    assert!(tried > 700 && succeeded > 500, "only {succeeded} of {tried} were let in");
    api.end().await;
}

/// A cookie is its tenant's, whatever the request names; and what guards one session guards no other.
#[tokio::test]
async fn a_cookie_reaches_its_own_tenant_only() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let run = api.start(json!([crate::harness::task("a")])).await;
    let ada = Person::new(&api, "ada", json!(["operator"]), json!([])).await;
    let eve = Person::in_tenant(&other, "two", "eve", json!(["operator"])).await;
    let before = everything(&api).await;
    let cancel = async |who: &Person<'_>, run: &str, csrf: &str| {
        let request = Request::post(format!("/api/v1/runs/{run}/cancel"))
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, "http://localhost")
            .header(header::COOKIE, &who.cookie)
            .header("x-interlock-csrf", csrf)
            .header(header::CONTENT_TYPE, "application/json");
        let answer = api.ask(request.body(Body::from(json!({ "reason": "x" }).to_string())).unwrap()).await;
        (answer.status.as_u16(), answer.body.to_string().replace(run, "RUN"))
    };
    let nobodys = super::neighbour(&run);
    assert_eq!(cancel(&eve, &run, &eve.csrf).await, cancel(&eve, &nobodys, &eve.csrf).await);
    assert_eq!(cancel(&ada, &run, &eve.csrf).await, cancel(&ada, &run, "nonsense").await);
    assert_eq!(everything(&api).await, before);
    assert_eq!(cancel(&ada, &run, &ada.csrf).await.0, 200, "with everything right it works");
    api.end().await;
}

/// The one header that holds an id. In both tenants an admin of the same name asks for the same; what was agreed to in one
/// is worth nothing in the other.
#[tokio::test(start_paused = true)]
async fn another_tenants_change_carries_nothing_out() {
    let api = Api::new().await;
    let other = api.with_key(&api.other_key);
    let own = Things::of(&api, api.tenant, "ours").await;
    let mut admins = Vec::new();
    for (api, tenant, name) in [(&api, api.tenant, "one"), (&other, api.other_tenant, "two")] {
        let ada = Person::in_tenant(api, name, "ada", json!(["admin"])).await;
        let bob = Person::in_tenant(api, name, "bob", json!(["admin"])).await;
        let settings = json!({ "two_keys_for_policy": true, "two_keys_for_access": true });
        ada.send("PATCH", &format!("/tenants/{tenant}"), settings).await.ok();
        admins.push([ada, bob]);
    }
    let [[ada, _], [their_ada, their_bob]] = admins.try_into().ok().unwrap();
    let new = json!({ "name": "k", "roles": ["admin"] });
    let theirs = change_of(&their_ada.post("/keys", new.clone()).await);
    decide(&their_bob, &theirs, json!({ "approve": true })).await.ok();
    let (before, before_there) = (everything(&api).await, everything(&other).await);

    let mut tried = 0;
    for line in MATRIX.iter().filter(|line| line.ids.contains(&(IdPosition::Header(CHANGE_HEADER), Thing::Change))) {
        let mut path = line.path.trim_start_matches("/api/v1").to_owned();
        for (place, thing) in line.ids {
            if let IdPosition::Path(name) = place {
                path = path.replace(&format!("{{{name}}}"), own.get(*thing));
            }
        }
        // People lend their own right without a second admin.
        let lent = line.path == delegations::path::DELEGATIONS;
        let body = if lent { json!({ "delegator": "bob" }) } else { new.clone() };
        let mut answers = Vec::new();
        for change in [theirs.clone(), super::neighbour(&theirs)] {
            let answer = ada.carrying(&change).send(line.method, &path, body.clone()).await;
            assert_eq!(answer.problem(), (404, "CHANGE_NOT_FOUND"), "{} {}: {}", line.method, line.path, answer.body);
            answers.push(answer.body.to_string().replace(&change, "CHANGE"));
        }
        assert_eq!(answers[0], answers[1], "{} {}", line.method, line.path);
        tried += 1;
    }
    assert_eq!(tried, 11, "routes that two keys guard");
    assert_eq!(everything(&api).await, before, "nothing has happened here");
    assert_eq!(everything(&other).await, before_there, "nor there");
    their_ada.carrying(&theirs).post("/keys", new).await.ok();
    api.end().await;
}
