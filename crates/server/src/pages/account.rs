//! `/account`: the person who is signed in, and signing out.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::layout::{escape, page};
use super::path;
use crate::api_error::ApiError;
use crate::origin;
use crate::request::Fields;
use crate::routes::me;
use crate::state::AppState;

#[derive(Deserialize)]
pub struct LogOut {
    csrf: String,
}

pub async fn show(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ApiError> {
    origin::check_host(&state, &headers)?;
    let Some(caller) = state.identity().visitor(&headers).await? else {
        return Ok((StatusCode::SEE_OTHER, [(LOCATION, path::LOGIN)]).into_response());
    };
    let me = me::describe(&state, &caller).await?;
    let groups = if me.groups.is_empty() { "none".to_owned() } else { me.groups.join(", ") };
    let facts = [
        ("Name", me.person.unwrap_or_default()),
        ("Tenant", me.tenant_name),
        ("Roles", me.roles.to_string()),
        ("Groups", groups),
    ];
    let mut list = String::new();
    for (name, value) in facts {
        let _ = write!(list, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    }
    let content = format!(
        "<dl>{list}</dl>
<p><a href=\"/docs\">The API, described</a></p>
<form method=\"post\" action=\"{}\">
<input type=\"hidden\" name=\"csrf\" value=\"{}\">
<button type=\"submit\">Sign out</button>
</form>",
        path::LOGOUT,
        escape(&me.csrf.unwrap_or_default())
    );
    Ok(page(StatusCode::OK, "You are signed in", &content))
}

pub async fn log_out(
    State(state): State<AppState>,
    headers: HeaderMap,
    Fields(form): Fields<LogOut>,
) -> Result<Response, ApiError> {
    origin::check_host(&state, &headers)?;
    origin::check_origin(&state, &headers)?;
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, path::LOGIN)]).into_response();
    if let Some(caller) = state.identity().visitor(&headers).await? {
        if state.identity().csrf(&caller).as_deref() != Some(form.csrf.as_str()) {
            return Err(ApiError::csrf());
        }
        response.headers_mut().insert(SET_COOKIE, state.identity().end_session(&caller).await?);
    }
    Ok(response)
}
