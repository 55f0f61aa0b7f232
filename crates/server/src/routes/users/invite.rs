//! `POST /users/{user}/invite`: a link by which the person sets a password, once.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use interlock_core::ids::UserId;
use interlock_protocol::identity::{Invite, path};
use interlock_protocol::runs::Nothing;

use super::view::OfUser;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::pages;
use crate::request::Body;
use crate::state::AppState;

/// Invite a person
///
/// A link by which the person sets a password, once.
#[utoipa::path(
    post,
    path = path::USER_INVITE,
    tag = "users",
    params(("user" = UserId, Path)),
    request_body = Nothing,
    responses((status = 201, description = "The link.", body = Invite)),
)]
pub async fn invite(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    OfUser(user): OfUser,
    Body(Nothing {}): Body<Nothing>,
) -> Result<(StatusCode, Json<Invite>), ApiError> {
    caller.check_charge_of(user.installation)?;
    let invite = state.identity().invite(user.tenant, Some(user.id)).await?;
    let link = pages::setup_link(&state.base_url(&headers), &invite.token);
    Ok((StatusCode::CREATED, Json(Invite { link, expires_at: invite.expires_at })))
}
