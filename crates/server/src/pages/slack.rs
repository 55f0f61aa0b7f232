//! `/slack/link`: a person who is signed in confirms that a Slack user is them. Slack has shown the address to that
//! user alone.

use axum::extract::{Query, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use interlock_core::text::visible::visible;
use interlock_store::{Changed, LinkSlackUser, SlackLinkRequestRow, SlackLinkRow};
use serde::Deserialize;
use serde_json::json;

use super::layout::{escape, page, refusal};
use super::path;
use crate::api_error::ApiError;
use crate::identity::key::same_text;
use crate::identity::oidc::encoded;
use crate::identity::{Caller, note};
use crate::origin;
use crate::request::Fields;
use crate::state::AppState;

#[derive(Deserialize)]
pub struct LinkQuery {
    token: String,
}

#[derive(Deserialize)]
pub struct Agree {
    csrf: String,
    token: String,
}

pub async fn show(State(state): State<AppState>, headers: HeaderMap, Query(query): Query<LinkQuery>) -> Response {
    form(&state, &headers, &query.token).await.unwrap_or_else(|error| failed(&error))
}

pub async fn submit(State(state): State<AppState>, headers: HeaderMap, Fields(form): Fields<Agree>) -> Response {
    link(&state, &headers, form).await.unwrap_or_else(|error| failed(&error))
}

async fn form(state: &AppState, headers: &HeaderMap, token: &str) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    let plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !plain {
        return Err(over());
    }
    let sign_in = || {
        let next = encoded(&format!("{}?token={token}", path::SLACK_LINK));
        (StatusCode::SEE_OTHER, [(LOCATION, format!("{}?next={next}", path::LOGIN))]).into_response()
    };
    // A link lasts longer than the visit that makes it: the person must have proven just now who they are.
    let Some(caller) = state.identity().visitor(headers).await? else { return Ok(sign_in()) };
    if caller.check_proven_lately(state.now()).is_err() {
        return Ok(sign_in());
    }
    let request = requested(state, &caller, token).await?;
    let content = format!(
        "<p>The Slack user <strong>{}</strong> ({} in workspace {}) is to decide as <strong>{}</strong>. Go on only if you \
have just pressed a button in Slack yourself, and this is your own Slack account: its user approves in your name.</p>
<form method=\"post\" action=\"{}\">
<input type=\"hidden\" name=\"csrf\" value=\"{}\">
<input type=\"hidden\" name=\"token\" value=\"{token}\">
<button type=\"submit\">This is me</button>
</form>",
        escape(&visible(&request.slack_name)),
        escape(&visible(&request.who.user)),
        escape(&visible(&request.who.team)),
        escape(caller.person.as_deref().unwrap_or_default()),
        path::SLACK_LINK,
        escape(&state.identity().csrf(&caller).unwrap_or_default()),
    );
    Ok(page(StatusCode::OK, "Link your Slack account", &content))
}

async fn link(state: &AppState, headers: &HeaderMap, form: Agree) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    origin::check_origin(state, headers)?;
    let Agree { csrf, token } = form;
    let caller = state.identity().visitor(headers).await?.ok_or_else(ApiError::unauthorized)?;
    if !state.identity().csrf(&caller).is_some_and(|own| same_text(&own, &csrf)) {
        return Err(ApiError::csrf());
    }
    let now = state.now();
    caller.check_proven_lately(now)?;
    let request = requested(state, &caller, &token).await?;
    let person = caller.as_voter()?.to_owned();
    let details = json!({
        "enterprise": request.who.enterprise, "team": request.who.team, "user": request.who.user,
    });
    let what = note::by(&caller, "slack.linked", &person, &details);
    let link =
        SlackLinkRow { tenant: caller.tenant, who: request.who, linked_by: person.clone(), person, linked_at: now };
    let write = LinkSlackUser { token_hash: request.token_hash, link };
    if state.identity().write_noted(caller.tenant, write, what).await? == Changed::Gone {
        return Err(over());
    }
    let content = "<p>Your Slack account is linked. Go back to Slack and press the button again.</p>
<p>For a day a new link does not count where two people must agree.</p>";
    Ok(page(StatusCode::OK, "Linked", content))
}

/// The request behind an address, if it is one of the visitor's own tenant and its time is not over.
async fn requested(state: &AppState, caller: &Caller, token: &str) -> Result<SlackLinkRequestRow, ApiError> {
    let hash = state.identity().slack_token_hash(token);
    let row = state.for_tenant(caller.tenant).slack_link_request(hash).await?;
    row.filter(|row| row.expires_at > state.now()).ok_or_else(over)
}

fn over() -> ApiError {
    let detail = "this address was used, or its time is over, or it is for another tenant: press the button in Slack again, \
                  and open the new one";
    ApiError::new(StatusCode::NOT_FOUND, "SLACK_LINK_OVER", detail)
}

fn failed(error: &ApiError) -> Response {
    refusal("Your Slack account is not linked", error, "")
}
