//! Where a browser's request comes from. A page of another site can make a browser send requests here, with our cookie
//! on some of them; it cannot forge the headers by which the browser tells on it.

use axum::http::{HeaderMap, StatusCode, header};

use crate::api_error::ApiError;
use crate::state::AppState;

/// On loopback: a page can make a browser connect here under a name of its own, and the name gives it away. A request
/// with a key needs no such check: no page can make a browser send one.
pub fn check_host(state: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    let host = text(headers, header::HOST);
    let own = state.public_host().is_some_and(|own| own.eq_ignore_ascii_case(host));
    if !state.is_on_loopback() || is_loopback(host) || own {
        return Ok(());
    }
    let detail = "this server listens on loopback and answers only to loopback names, and to its public address";
    Err(ApiError::new(StatusCode::FORBIDDEN, "HOST_REFUSED", detail))
}

/// A browser says which site's page makes it ask. Other programs say nothing, and have no cookie either.
pub fn check_origin(state: &AppState, headers: &HeaderMap) -> Result<(), ApiError> {
    let host = text(headers, header::HOST);
    let origin = text(headers, header::ORIGIN);
    let of_origin = origin.split_once("://").map_or(origin, |(_, host)| host);
    let known = of_origin.eq_ignore_ascii_case(host)
        || state.public_host().is_some_and(|own| own.eq_ignore_ascii_case(of_origin));
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok()).unwrap_or("none");
    let foreign = if origin.is_empty() { !matches!(site, "none" | "same-origin") } else { !known };
    if !foreign {
        return Ok(());
    }
    let detail = "a page of another site may not ask this";
    Err(ApiError::new(StatusCode::FORBIDDEN, "ORIGIN_REFUSED", detail))
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
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
