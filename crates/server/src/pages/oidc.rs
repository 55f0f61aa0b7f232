//! `/auth/oidc/…`: to the provider and back.

use axum::extract::{Query, State};
use axum::http::header::{COOKIE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use super::layout::refusal;
use super::{login, path};
use crate::api_error::ApiError;
use crate::identity::oidc::{OidcError, Provider, flow, proven_at};
use crate::origin;
use crate::state::AppState;

#[derive(Deserialize)]
pub struct ProviderQuery {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
pub struct ProviderCallback {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    error: String,
}

pub async fn start(State(state): State<AppState>, headers: HeaderMap, Query(wish): Query<ProviderQuery>) -> Response {
    match depart(&state, &headers, &wish.next).await {
        Ok(response) => response,
        Err(error) => failed(&error),
    }
}

pub async fn callback(
    State(state): State<AppState>,
    headers: HeaderMap,
    Query(back): Query<ProviderCallback>,
) -> Response {
    match arrive(&state, &headers, back).await {
        Ok(response) => response,
        Err(error) => failed(&error),
    }
}

async fn depart(state: &AppState, headers: &HeaderMap, next: &str) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    let provider = provider(state)?;
    // A person who is signed in already comes to prove once more who they are.
    let again = state.identity().visitor(headers).await?.is_some();
    let departure = provider.depart(state.identity(), &state.base_url(headers), login::local(next), again).await?;
    let headers = [(LOCATION, departure.location), (SET_COOKIE, departure.cookie)];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

async fn arrive(state: &AppState, headers: &HeaderMap, back: ProviderCallback) -> Result<Response, ApiError> {
    origin::check_host(state, headers)?;
    let provider = provider(state)?;
    if !back.error.is_empty() {
        let word: String = back.error.chars().take(80).collect();
        return Err(OidcError::Refused(format!("the identity provider says: {word}")).into());
    }
    let cookies = headers.get(COOKIE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let arrival = provider.arrive(state.identity(), flow::carried(cookies), &back.state, back.code)?;
    let claims = match provider.claims(&arrival, state.now()).await {
        Ok(claims) => claims,
        // Anybody can bring a code that the provider does not know, as often as they like: it says of nobody who was refused.
        Err(error @ OidcError::CodeOver(_)) => return Err(error.into()),
        Err(error) => return Err(noted(state, provider, None, error.into()).await),
    };
    let user = match provider.account(state.identity(), &claims).await {
        Ok(user) => user,
        Err(error) => return Err(noted(state, provider, Some(provider.name(&claims)), error).await),
    };
    let proven_at = proven_at(&claims, state.now());
    let opened = state.identity().open_session_proven(user, proven_at).await?;
    let next = login::local(&arrival.next).to_owned();
    let forget = flow::forget(state.identity());
    let session = opened.cookie.to_str().unwrap_or_default().to_owned();
    let headers = AppendHeaders([(LOCATION, next), (SET_COOKIE, session), (SET_COOKIE, forget)]);
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Notes that somebody who was sent back by the provider was not let in. Where it could not be asked, nobody was refused.
async fn noted(state: &AppState, provider: &Provider, name: Option<String>, error: ApiError) -> ApiError {
    if error.status() != StatusCode::FORBIDDEN {
        return error;
    }
    let options = provider.options();
    let details = json!({ "name": name, "by": options.issuer, "why": error.detail() });
    state.identity().note_refused(options.tenant, &details).await.err().unwrap_or(error)
}

fn provider(state: &AppState) -> Result<&Provider, ApiError> {
    state.oidc().ok_or_else(ApiError::no_such_route)
}

fn failed(error: &ApiError) -> Response {
    let back = format!("<a class=\"button second\" href=\"{}\">Back to sign in</a>", path::LOGIN);
    refusal("You are not signed in", error, &back)
}
