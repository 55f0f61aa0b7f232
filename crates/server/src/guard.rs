//! Who may talk to the server: whoever knows the token; without a token, whoever is on this machine.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use interlock_core::json::Hash;

use crate::api_error::ApiError;
use crate::state::AppState;

/// Refuses requests without the server's token.
pub async fn check(State(state): State<AppState>, request: Request, next: Next) -> Result<Response, ApiError> {
    match state.token_hash() {
        Some(expected) => check_token(&request, expected)?,
        None => check_host(&request)?,
    }
    Ok(next.run(request).await)
}

/// Hashes are compared instead of texts, so the time it takes says nothing about the token.
fn check_token(request: &Request, expected: Hash) -> Result<(), ApiError> {
    let authorization = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = authorization.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if Hash::of(token.trim().as_bytes()) == expected {
        return Ok(());
    }
    let detail = "send the server's token as `authorization: Bearer …`";
    Err(ApiError::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", detail))
}

/// A web page can make a browser connect to loopback under a name of its own; the name gives it away.
fn check_host(request: &Request) -> Result<(), ApiError> {
    let host = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| request.uri().host()).unwrap_or_default();
    if is_loopback(host) {
        return Ok(());
    }
    let detail = "this server has no token and answers only on loopback; start it with a token file to open it";
    Err(ApiError::new(StatusCode::FORBIDDEN, "HOST_REFUSED", detail))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_loopback() {
        for host in ["localhost", "localhost:8420", "LocalHost:1", "127.0.0.1:8420", "127.0.0.1", "[::1]:8420", "[::1]"]
        {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "example.org", "localhost.example.org", "127.0.0.1.example.org:80", "10.0.0.1:8420", "[fe80::1]"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
