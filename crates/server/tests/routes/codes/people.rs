//! People who sign in, or do not.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_outbound::{Outbound, OutboundOptions};
use interlock_server::identity::oidc::{OidcOptions, Provider};
use serde_json::{Value, json};

use super::{CodeSource, table};
use crate::approvals::Person;
use crate::harness::{Api, ApiResponse};

/// Asks without any credential.
async fn stranger(api: &Api, path: &str, body: Value) -> ApiResponse {
    let request = Request::post(format!("/api/v1{path}"))
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

/// A write of a person who is signed in, with these headers beside the cookie.
async fn with_cookie(api: &Api, headers: impl FnOnce(&Person<'_>) -> Vec<(&'static str, String)>) -> ApiResponse {
    let ada = Person::new(api, "ada", json!(["operator"]), json!([])).await;
    let mut request = Request::post("/api/v1/signals")
        .header(header::HOST, "localhost")
        .header(header::COOKIE, &ada.cookie)
        .header(header::CONTENT_TYPE, "application/json");
    for (name, value) in headers(&ada) {
        request = request.header(name, value);
    }
    api.ask(request.body(Body::from(json!({ "type": "go", "key": "k" }).to_string())).unwrap()).await
}

async fn guessing(api: &Api) -> ApiResponse {
    Person::new(api, "ada", json!(["viewer"]), json!([])).await;
    let guess = json!({ "name": "ada", "password": "wrong password" });
    // The wait grows with every guess, so also a slow machine makes one in time.
    for _ in 0..15 {
        let answer = stranger(api, "/auth/login", guess.clone()).await;
        if answer.problem().1 != "LOGIN_FAILED" {
            return answer;
        }
    }
    panic!("nobody minds");
}

async fn link_that_never_was(api: &Api) -> CodeSource {
    let request = Request::get("/setup?token=nonsense").header(header::HOST, "localhost");
    CodeSource::on_page(&api.ask(request.body(Body::empty()).unwrap()).await)
}

async fn slack_link_that_never_was(api: &Api) -> CodeSource {
    let ada = Person::new(api, "ada", json!(["viewer"]), json!([])).await;
    let request = Request::get("/slack/link?token=nonsense").header(header::HOST, "localhost");
    CodeSource::on_page(&api.ask(request.header(header::COOKIE, &ada.cookie).body(Body::empty()).unwrap()).await)
}

/// A server with an identity provider at an address that does not answer.
fn with_provider(api: &Api) -> Api {
    let open = OutboundOptions { open: vec!["127.0.0.1".parse().unwrap()], ..OutboundOptions::default() };
    let oidc = OidcOptions::new("http://127.0.0.1:1".to_owned(), "interlock", api.tenant);
    let provider = Provider::new(oidc, Outbound::new(open).unwrap());
    api.with_options(|options| options.oidc = Some(provider))
}

async fn at_the_provider(api: &Api, path: &str) -> CodeSource {
    let request = Request::get(path).header(header::HOST, "localhost").body(Body::empty());
    CodeSource::on_page(&with_provider(api).ask(request.unwrap()).await)
}

table! { TABLE:
    "LOGIN_FAILED" => |api| stranger(api, "/auth/login", json!({ "name": "eve", "password": "a guess or two" })).await,
    "LOGIN_THROTTLED" => |api| guessing(api).await,
    "LOGIN_CODE_OVER" => |api| stranger(api, "/auth/token", json!({ "by": "code", "code": "a.b.c", "verifier": "v" })).await,
    "INVITE_OVER" => |api| link_that_never_was(api).await,
    "SLACK_LINK_OVER" => |api| slack_link_that_never_was(api).await,
    "CSRF_INVALID" => |api| with_cookie(api, |_| vec![("origin", "http://localhost".to_owned())]).await,
    "ORIGIN_REFUSED" => |api| with_cookie(api, |ada| {
        vec![("origin", "https://evil.example".to_owned()), ("x-interlock-csrf", ada.csrf.clone())]
    }).await,
    "PROVIDER_UNAVAILABLE" => |api| at_the_provider(api, "/auth/oidc/start").await,
    "PROVIDER_REFUSED" => |api| at_the_provider(api, "/auth/oidc/callback?code=a&state=b").await,
}
