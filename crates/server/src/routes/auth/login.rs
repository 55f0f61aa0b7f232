//! `POST /auth/login`: a password for a cookie.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};
use interlock_protocol::identity::{Login, Me, path};

use crate::api_error::ApiError;
use crate::connections::PeerAddress;
use crate::origin;
use crate::request::Body;
use crate::routes::me;
use crate::state::AppState;

/// Sign in with a password
///
/// The answer sets a cookie. Writes under the cookie also need the header `x-interlock-csrf`.
#[utoipa::path(
    post,
    path = path::LOGIN,
    tag = "auth",
    request_body = Login,
    responses((status = 200, description = "Signed in.", body = Me, headers(("set-cookie" = String, description = "The visit.")))),
)]
pub async fn login(
    State(state): State<AppState>,
    peer: PeerAddress,
    headers: HeaderMap,
    Body(login): Body<Login>,
) -> Result<Response, ApiError> {
    // Another site's page must not sign a browser in as another person.
    origin::check_host(&state, &headers)?;
    origin::check_origin(&state, &headers)?;
    let tenant = state.tenant_named(login.tenant.as_deref()).await?;
    let user = state.identity().log_in(tenant, &login.name, login.password, peer).await?;
    let opened = state.identity().open_session(user).await?;
    let body = Json(me::describe(&state, &opened.caller).await?);
    Ok(([(SET_COOKIE, opened.cookie)], body).into_response())
}
