//! `/login`: signing in with a password, or by the identity provider.

use axum::extract::{Query, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::layout::{alert, escape, page};
use super::path;
use crate::api_error::ApiError;
use crate::connections::PeerAddress;
use crate::identity::oidc;
use crate::origin;
use crate::request::Fields;
use crate::state::AppState;

#[derive(Deserialize, Default)]
pub struct LoginQuery {
    /// Where to go afterwards.
    #[serde(default)]
    next: String,
    #[serde(default)]
    tenant: String,
}

#[derive(Deserialize)]
pub struct SignIn {
    name: String,
    password: String,
    #[serde(flatten)]
    wish: LoginQuery,
}

pub async fn show(State(state): State<AppState>, headers: HeaderMap, Query(wish): Query<LoginQuery>) -> Response {
    match origin::check_host(&state, &headers) {
        Ok(()) => form(&state, StatusCode::OK, &wish, "", None),
        Err(error) => error.into_response(),
    }
}

pub async fn submit(
    State(state): State<AppState>,
    peer: PeerAddress,
    headers: HeaderMap,
    Fields(form): Fields<SignIn>,
) -> Response {
    let SignIn { name, password, wish } = form;
    match sign_in(&state, (peer, &headers), &name, password, &wish).await {
        Ok(response) => response,
        Err(error) => self::form(&state, error.status(), &wish, &name, Some(error.detail())),
    }
}

async fn sign_in(
    state: &AppState,
    (peer, headers): (PeerAddress, &HeaderMap),
    name: &str,
    password: String,
    wish: &LoginQuery,
) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    origin::check_origin(state, headers)?;
    let tenant = state.tenant_named(Some(wish.tenant.as_str()).filter(|tenant| !tenant.is_empty())).await?;
    let user = state.identity().log_in(tenant, name, password, peer).await?;
    let opened = state.identity().open_session(user).await?;
    let next = local(&wish.next).to_owned();
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, opened.cookie)], [(LOCATION, next)]).into_response())
}

/// A path on this server; anything else could lead somewhere else.
pub fn local(next: &str) -> &str {
    // Browsers drop control characters and read `\\` as `/`: what looks like a path here may name a host there.
    let visible = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let plain = next.starts_with('/') && !next.starts_with("//") && visible;
    if plain { next } else { path::ROOT }
}

fn form(state: &AppState, status: StatusCode, wish: &LoginQuery, name: &str, message: Option<&str>) -> Response {
    let (alert, name, action) = (alert(message), escape(name), path::LOGIN);
    let (next, tenant) = (escape(&wish.next), escape(&wish.tenant));
    let provider = match state.oidc() {
        Some(provider) => format!(
            "<p class=\"or\">or</p><a class=\"button second\" href=\"{}?next={}\">Sign in with {}</a>",
            oidc::path::START,
            oidc::encoded(&wish.next),
            escape(provider.label())
        ),
        None => String::new(),
    };
    let content = format!(
        "{alert}<form method=\"post\" action=\"{action}\">
<input type=\"hidden\" name=\"next\" value=\"{next}\">
<input type=\"hidden\" name=\"tenant\" value=\"{tenant}\">
<div class=\"field\"><label for=\"name\">Name</label>
<input id=\"name\" name=\"name\" value=\"{name}\" autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\" \
maxlength=\"128\" required autofocus></div>
<div class=\"field\"><label for=\"password\">Password</label>
<input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required></div>
<button type=\"submit\">Sign in</button>
</form>{provider}"
    );
    page(status, "Sign in", &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn afterwards_stays_on_this_server() {
        assert_eq!(local("/runs/1?x=2"), "/runs/1?x=2");
        let hidden =
            ["/\t/evil.example", "/\u{1}/evil.example", "/\u{7f}/evil.example", "/ /evil.example", "/\u{85}/e"];
        let plain = ["", "//evil.example", "https://evil.example", "/\\evil.example", "javascript:1", "/a\r\nb"];
        for elsewhere in plain.into_iter().chain(hidden) {
            assert_eq!(local(elsewhere), path::ROOT, "{elsewhere}");
        }
    }
}
