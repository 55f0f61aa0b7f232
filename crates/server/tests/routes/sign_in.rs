//! Signing in beside others who guess.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::{Request, header};
use axum::response::IntoResponse as _;
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::harness::{Api, ApiResponse};

const PASSWORD: &str = "correct horse battery";

async fn sign_in(api: &Api, name: &str, password: &str) -> ApiResponse {
    let body: Value = json!({ "name": name, "password": password });
    let request = Request::post("/api/v1/auth/login")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    api.ask(request.body(Body::from(body.to_string())).unwrap()).await
}

/// All sign-ins come from the same address here, which is the worst case.
#[tokio::test]
async fn made_up_names_do_not_keep_right_passwords_out() {
    const PEOPLE: usize = 40;
    const GUESSERS: usize = 100;
    let api = Arc::new(Api::new().await);
    for number in 0..PEOPLE {
        let account = json!({ "name": format!("person-{number}"), "roles": ["viewer"], "password": PASSWORD });
        api.post("/users", account).await.ok();
    }
    let (stop, guesses) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let guessing: Vec<_> = (0..GUESSERS)
        .map(|guesser| {
            let (api, stop, guesses) = (Arc::clone(&api), Arc::clone(&stop), Arc::clone(&guesses));
            tokio::spawn(async move {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let answer = sign_in(&api, &format!("made-up-{guesser}-{number}"), PASSWORD).await;
                    assert_eq!(answer.problem(), (401, "LOGIN_FAILED"));
                    guesses.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while guesses.load(Ordering::Relaxed) < GUESSERS {
        tokio::task::yield_now().await;
    }
    let signed_in = futures::stream::iter(0..PEOPLE)
        .map(|number| {
            let api = Arc::clone(&api);
            async move { sign_in(&api, &format!("person-{number}"), PASSWORD).await.status.as_u16() }
        })
        .buffer_unordered(20);
    let statuses: Vec<u16> = signed_in.collect().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), PEOPLE, "{statuses:?}");
    stop.store(true, Ordering::Relaxed);
    for guesser in guessing {
        guesser.await.unwrap();
    }
    Arc::into_inner(api).unwrap().end().await;
}

/// The code that a browser hands to a command line works once, on whichever server it is brought to.
#[tokio::test]
async fn a_code_for_the_command_line_works_once() {
    let api = Api::new().await;
    api.post("/users", json!({ "name": "ada", "roles": ["viewer"], "password": PASSWORD })).await.ok();
    let identity = api.identity();
    let user = api.engine.store().user_named(api.tenant, "ada").await.unwrap().unwrap();
    let caller = identity.open_session(user).await.unwrap().caller;
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let code = identity.hand_over(&caller, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM").unwrap();
    let ask = async || {
        let body = json!({ "by": "code", "code": code, "verifier": verifier });
        let request = Request::post("/api/v1/auth/token")
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json");
        api.ask(request.body(Body::from(body.to_string())).unwrap()).await
    };
    assert_eq!(ask().await.ok()["person"], "ada");
    assert_eq!(ask().await.problem(), (401, "LOGIN_CODE_OVER"));
    api.end().await;
}

#[tokio::test]
async fn a_page_of_another_site_sets_no_password() {
    let api = Api::new().await;
    let invite = api.identity().invite_first_admin(api.tenant).await.unwrap();
    let form = format!("token={}&name=ada&password=correct+horse+battery&again=correct+horse+battery", invite.token);
    let ask = async |origin: &str| {
        let request = Request::post("/setup")
            .header(header::HOST, "localhost")
            .header(header::ORIGIN, origin)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        api.raw(request.body(Body::from(form.clone())).unwrap()).await
    };
    assert_eq!(ask("https://evil.example").await.status(), 403);
    assert!(api.engine.store().users(api.tenant, None, 1).await.unwrap().is_empty());
    assert_eq!(ask("http://localhost").await.status(), 303);
    api.end().await;
}

#[tokio::test]
async fn people_ask_only_as_often_as_they_may() {
    let api = Api::new().await;
    api.post("/users", json!({ "name": "ada", "roles": ["viewer"], "password": PASSWORD })).await.ok();
    let identity = api.identity_at(Some(1));
    let user = api.engine.store().user_named(api.tenant, "ada").await.unwrap().unwrap();
    let token = identity.open_token(&user, api.engine.now()).await.unwrap().token;
    let mut headers = axum::http::HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    let mut refused = None;
    for _ in 0..20 {
        if let Err(error) = identity.key_holder(&headers).await {
            refused = Some(error.into_response().status().as_u16());
            break;
        }
    }
    assert_eq!(refused, Some(429));
    api.end().await;
}
