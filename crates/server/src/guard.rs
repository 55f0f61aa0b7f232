//! Stands before every route: who asks, and whether the matrix lets them.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use interlock_core::identity::{Permission, Role};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::matrix;
use crate::state::AppState;

/// Finds the caller, and refuses whom the route is not for. A route that the matrix does not know is not there.
pub async fn check(State(state): State<AppState>, mut request: Request, next: Next) -> Result<Response, ApiError> {
    let pattern = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    let Some(line) = matrix::find(request.method().as_str(), pattern) else {
        tracing::error!(method = %request.method(), pattern, "a route is missing from the permission matrix");
        return Err(ApiError::no_such_route());
    };
    if line.needs == Permission::Public {
        return Ok(next.run(request).await);
    }
    let Some(caller) = state.identity().authenticate(request.headers()).await? else {
        check_host(&state, request.headers(), request.uri())?;
        return Err(ApiError::unauthorized());
    };
    if !caller.may(line.needs) {
        return Err(denied(&caller, line.needs));
    }
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

pub fn denied(caller: &Caller, needed: Permission) -> ApiError {
    let enough: Vec<_> = Role::ALL.iter().filter(|role| role.grants(needed)).map(|role| role.as_str()).collect();
    let mut detail = format!("this needs the role {}; yours: {}", enough.join(" or "), caller.roles);
    if needed == Permission::Install {
        detail.push_str(", and charge of the installation");
    }
    ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail)
}

/// A web page can make a browser connect to loopback under a name of its own; the name gives it away. A request with a
/// key needs no such check: no page can make a browser send one.
pub fn check_host(state: &AppState, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    if !state.is_on_loopback() {
        return Ok(());
    }
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let host = host.or_else(|| uri.host()).unwrap_or_default();
    if is_loopback(host) {
        return Ok(());
    }
    let detail = "this server listens on loopback and answers only to loopback names";
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
