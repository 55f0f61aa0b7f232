//! The token, and what happens without one.

use axum::body::Body;
use axum::http::{Request, header};

use crate::api::{Answer, Api};

const TOKEN: &str = "0123456789abcdef";

async fn ask(api: &Api, path: &str, headers: &[(header::HeaderName, &str)]) -> Answer {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    api.ask(request.body(Body::empty()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn a_token_guards_everything_but_the_health_checks() {
    let api = Api::guarded_by(Some(TOKEN)).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(ask(&api, path, &[]).await.status, 200, "{path}");
    }
    let runs = "/api/v1/runs";
    for authorization in ["", "Bearer", "Bearer ", "Bearer 0123456789abcdeg", "Basic 0123456789abcdef", TOKEN] {
        let answer = ask(&api, runs, &[(header::AUTHORIZATION, authorization)]).await;
        assert_eq!(answer.problem(), (401, "UNAUTHORIZED"), "{authorization}");
        assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
    }
    let bearer = format!("Bearer {TOKEN}");
    let answer = ask(&api, runs, &[(header::AUTHORIZATION, &bearer), (header::HOST, "example.org")]).await;
    assert_eq!(answer.status, 200);
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_token_only_loopback_is_answered() {
    let api = Api::new().await;
    let runs = "/api/v1/runs";
    assert_eq!(ask(&api, runs, &[(header::HOST, "127.0.0.1:8420")]).await.status, 200);
    let rebound = ask(&api, runs, &[(header::HOST, "evil.example.org:8420")]).await;
    assert_eq!(rebound.problem(), (403, "HOST_REFUSED"));
    api.end().await;
}
