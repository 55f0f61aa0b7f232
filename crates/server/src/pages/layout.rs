//! What all pages share: the frame, the headers that keep a page to itself, and text made harmless.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{Html, IntoResponse, Response};

use super::path;
use crate::api_error::ApiError;

/// Nothing but our own style sheet and forms that come back here; never inside another page.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    // The address of the set-up page holds its secret, so no other site is told of it. `no-referrer` would also do that, but
    // browsers then send forms with `Origin: null`, which is refused like a form of another site.
    (REFERRER_POLICY, "same-origin"),
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

/// A page around `content`, which is HTML already.
pub fn page(status: StatusCode, title: &str, content: &str) -> Response {
    let style = path::STYLE;
    let html = format!(
        "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<title>{title} · Interlock</title>
<link rel=\"stylesheet\" href=\"{style}\">
</head>
<body>
<main>
<p class=\"brand\"><span class=\"mark\" aria-hidden=\"true\"></span>Interlock</p>
<h1>{title}</h1>
{content}
</main>
</body>
</html>
"
    );
    (status, HEADERS, Html(html)).into_response()
}

/// Something went wrong, said above the form, where a screen reader hears it first.
pub fn alert(message: Option<&str>) -> String {
    message.map(|text| format!("<p class=\"alert\" role=\"alert\">{}</p>", escape(text))).unwrap_or_default()
}

/// A page with a refusal and its code, by which the operator can look it up. `content` says where to go from here.
pub fn refusal(title: &str, error: &ApiError, content: &str) -> Response {
    let code = format!("<p class=\"hint\">{}</p>", error.code());
    page(error.status(), title, &format!("{}{code}{content}", alert(Some(error.detail()))))
}

/// Text for any place in HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(super::escape(r#"<a href="x" b='&'>"#), "&lt;a href=&quot;x&quot; b=&#39;&amp;&#39;&gt;");
    }
}
