//! `GET /docs`: the description, readable. Three small files of this server, nothing from elsewhere.

use axum::http::{HeaderName, header};
use axum::response::IntoResponse;

/// Only what this server serves may run, and only this server may be asked.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

type Headers = [(HeaderName, &'static str); 4];

fn headers(media_type: &'static str) -> Headers {
    [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ]
}

pub async fn html() -> impl IntoResponse {
    (headers("text/html; charset=utf-8"), include_str!("page.html"))
}

pub async fn css() -> impl IntoResponse {
    (headers("text/css; charset=utf-8"), include_str!("page.css"))
}

pub async fn js() -> impl IntoResponse {
    (headers("text/javascript; charset=utf-8"), include_str!("page.js"))
}
