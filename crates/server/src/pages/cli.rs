//! `/auth/cli`: a person who is signed in lets the command line act as them. `interlock login --browser` sends people
//! here with a challenge; the answer is a code, brought to the command line's own port on this machine, or shown to be
//! typed in where the browser runs elsewhere.

use axum::extract::{Query, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::layout::{alert, escape, page};
use super::path;
use crate::api_error::ApiError;
use crate::identity::key::same_text;
use crate::identity::oidc::encoded;
use crate::origin;
use crate::request::Fields;
use crate::state::AppState;

/// A SHA-256 in base64 for addresses (RFC 7636).
const CHALLENGE_CHARS: usize = 43;
const STATE_CHARS_MAX: usize = 128;

/// What the command line asks for.
#[derive(Deserialize)]
pub struct CodeQuery {
    challenge: String,
    #[serde(default)]
    state: String,
    /// Where the command line listens; without it the code is shown.
    #[serde(default)]
    port: Option<u16>,
}

#[derive(Deserialize)]
pub struct Allow {
    csrf: String,
    #[serde(flatten)]
    wish: CliForm,
}

/// A form's fields are all texts.
#[derive(Deserialize)]
struct CliForm {
    challenge: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    port: String,
}

impl CodeQuery {
    fn checked(self) -> Result<Self, ApiError> {
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let fits = self.challenge.len() == CHALLENGE_CHARS && plain(&self.challenge);
        if !fits || self.state.len() > STATE_CHARS_MAX || !plain(&self.state) || self.port == Some(0) {
            return Err(ApiError::invalid(
                "this address is not one that `interlock login --browser` has made".to_owned(),
            ));
        }
        Ok(self)
    }

    fn address(&self) -> String {
        let port = self.port.map_or_else(String::new, |port| format!("&port={port}"));
        format!("{}?challenge={}&state={}{port}", path::CLI, self.challenge, self.state)
    }
}

pub async fn show(State(state): State<AppState>, headers: HeaderMap, Query(wish): Query<CodeQuery>) -> Response {
    form(&state, &headers, wish).await.unwrap_or_else(|error| failed(&error))
}

pub async fn allow(State(state): State<AppState>, headers: HeaderMap, Fields(form): Fields<Allow>) -> Response {
    hand_over(&state, &headers, form).await.unwrap_or_else(|error| failed(&error))
}

async fn form(state: &AppState, headers: &HeaderMap, wish: CodeQuery) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    let wish = wish.checked()?;
    let Some(caller) = state.identity().visitor(headers).await? else {
        let location = format!("{}?next={}", path::LOGIN, encoded(&wish.address()));
        return Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response());
    };
    let content = format!(
        "<p>The command line asks to act as <strong>{}</strong>. Go on only if you have just started \
<code>interlock login</code> yourself.</p>
<form method=\"post\" action=\"{}\">
<input type=\"hidden\" name=\"csrf\" value=\"{}\">
<input type=\"hidden\" name=\"challenge\" value=\"{}\">
<input type=\"hidden\" name=\"state\" value=\"{}\">
<input type=\"hidden\" name=\"port\" value=\"{}\">
<button type=\"submit\">Let it in</button>
</form>",
        escape(caller.person.as_deref().unwrap_or_default()),
        path::CLI,
        escape(&state.identity().csrf(&caller).unwrap_or_default()),
        escape(&wish.challenge),
        escape(&wish.state),
        wish.port.map(|port| port.to_string()).unwrap_or_default(),
    );
    let mut response = page(StatusCode::OK, "Let the command line in", &content);
    if let Some(port) = wish.port {
        // Browsers hold a form to its policy through redirects too.
        let policy = format!(
            "default-src 'none'; style-src 'self'; form-action 'self' http://127.0.0.1:{port}; base-uri 'none'; frame-ancestors 'none'"
        );
        let policy = HeaderValue::from_str(&policy).expect("a policy with a number in it is a header");
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

async fn hand_over(state: &AppState, headers: &HeaderMap, form: Allow) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    origin::check_origin(state, headers)?;
    let Allow { csrf, wish: CliForm { challenge, state: asked, port } } = form;
    let wish = CodeQuery { challenge, state: asked, port: port.parse().ok() }.checked()?;
    let caller = state.identity().visitor(headers).await?.ok_or_else(ApiError::unauthorized)?;
    if !state.identity().csrf(&caller).is_some_and(|own| same_text(&own, &csrf)) {
        return Err(ApiError::csrf());
    }
    let code = state.identity().hand_over(&caller, &wish.challenge)?;
    if let Some(port) = wish.port {
        let location = format!("http://127.0.0.1:{port}/?code={code}&state={}", wish.state);
        return Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response());
    }
    let ask = "Give this code to <code>interlock login</code>, within two minutes:";
    Ok(page(StatusCode::OK, "One more step", &format!("<p>{ask}</p><p><code>{code}</code></p>")))
}

fn failed(error: &ApiError) -> Response {
    page(error.status(), "The command line stays out", &alert(Some(error.detail())))
}
