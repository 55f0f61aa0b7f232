//! The operator console: a page of scripts and styles, built from `console/` and embedded in the binary. Every room has an
//! address, and all of them answer with the same page; what it shows, it asks of the public API.

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::layout::page;
use super::path;
use crate::api_error::ApiError;
use crate::embedded::Embedded;
use crate::identity::oidc::encoded;
use crate::origin;
use crate::state::AppState;

/// A file that `make console` has written.
struct ConsoleFile {
    path: &'static str,
    content: Embedded,
}

// All of them: `FILES`.
include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// First words of the addresses that are the console's. Any other address that no route has does not exist.
const ROOMS: &[&str] =
    &["runs", "workspace", "approvals", "workflows", "schedules", "workers", "policy", "audit", "webhooks", "settings"];
const ASSETS: &str = "/assets/";
const INDEX: &str = "/index.html";

/// Only files of this server, nothing inline, and nothing but this server is asked. Text never becomes markup: the browser
/// itself refuses it where a script would try.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PAGE_HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CONTENT_SECURITY_POLICY, POLICY),
    (REFERRER_POLICY, "same-origin"),
    // The page names its scripts by their hashes: after an upgrade it must be asked for again.
    (CACHE_CONTROL, "no-cache"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// `GET /`, and every address that no route has.
pub async fn answer(
    State(state): State<AppState>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !matches!(method, Method::GET | Method::HEAD) {
        return Err(ApiError::no_such_route());
    }
    let path = uri.path();
    if path.starts_with(ASSETS) {
        return FILES
            .iter()
            .find(|file| file.path == path)
            .map(|file| asset(file, &headers))
            .ok_or_else(ApiError::no_such_route);
    }
    let room = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if path != path::ROOT && !ROOMS.contains(&room) {
        return Err(ApiError::no_such_route());
    }
    origin::check_host(&state, &headers)?;
    if state.identity().visitor(&headers).await?.is_none() {
        return Ok((StatusCode::SEE_OTHER, [(LOCATION, sign_in(&uri))]).into_response());
    }
    Ok(FILES.iter().find(|file| file.path == INDEX).map_or_else(not_built, |file| index(file, &headers)))
}

/// The sign-in page, which leads back to the page that was asked for.
fn sign_in(uri: &Uri) -> String {
    if uri.path() == path::ROOT {
        return path::LOGIN.to_owned();
    }
    let wanted = uri.path_and_query().map_or(path::ROOT, axum::http::uri::PathAndQuery::as_str);
    format!("{}?next={}", path::LOGIN, encoded(wanted))
}

fn index(file: &'static ConsoleFile, headers: &HeaderMap) -> Response {
    let mut response = file.content.answer(headers);
    for (name, value) in PAGE_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Its name has its hash in it, so it never changes.
fn asset(file: &'static ConsoleFile, headers: &HeaderMap) -> Response {
    let mut response = file.content.answer(headers);
    let own = [
        (CONTENT_TYPE, media_type(file.path)),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in own {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

fn not_built() -> Response {
    let content = "<p>This binary was built without the console. Build it, then build the binary again:</p>
<p><code>make console</code></p>
<p>Everything else works: the <a href=\"/docs\">API</a>, the command line, and <a href=\"/account\">your account</a>.</p>";
    page(StatusCode::OK, "The console is not here", content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_signed_in_comes_back_to_where_they_wanted_to_go() {
        assert_eq!(sign_in(&Uri::from_static("/")), "/login");
        assert_eq!(sign_in(&Uri::from_static("/runs?state=failed")), "/login?next=%2Fruns%3Fstate%3Dfailed");
    }

    #[test]
    fn a_built_console_is_whole() {
        if FILES.is_empty() {
            return;
        }
        let index = FILES.iter().find(|file| file.path == INDEX).expect("a page");
        let page = std::str::from_utf8(index.content.plain()).expect("text");
        assert!(!page.contains("<style") && !page.contains("<script>"), "the policy refuses what stands inline");
        let assets: Vec<_> = FILES.iter().filter(|file| file.path.starts_with(ASSETS)).collect();
        assert!(assets.iter().any(|file| page.contains(file.path)), "the page names its scripts");
        for file in assets {
            assert!(!file.content.plain().is_empty(), "{}", file.path);
            assert_ne!(media_type(file.path), "application/octet-stream", "{}", file.path);
        }
    }
}
