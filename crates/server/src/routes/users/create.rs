//! `POST /users`: an account for a person of the tenant. Without a password it waits for an invite or a provider.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::identity::{CreateUser, UserView, path};
use interlock_store::UserRow;

use super::view;
use crate::api_error::ApiError;
use crate::identity::{Caller, people};
use crate::request::{Body, text};
use crate::state::AppState;

/// Make an account for a person
///
/// Without a password it waits for an invite or for a provider to vouch for the person.
#[utoipa::path(
    post,
    path = path::USERS,
    tag = "users",
    request_body = CreateUser,
    responses((status = 201, description = "The person.", body = UserView)),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<CreateUser>,
) -> Result<(StatusCode, Json<UserView>), ApiError> {
    let identity = state.identity();
    let password = match body.password {
        Some(password) => Some(identity.passwords().hash(password).await?),
        None => None,
    };
    let user = UserRow {
        display_name: text("display_name", body.display_name)?,
        email: text("email", body.email)?,
        roles: body.roles,
        groups: people::groups(body.groups)?,
        password,
        created_by: Some(caller.name()),
        ..identity.new_user(caller.tenant, people::person_name(body.name)?)
    };
    let user = identity.add_user(user).await?;
    Ok((StatusCode::CREATED, Json(view::user(user))))
}
