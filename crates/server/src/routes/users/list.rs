//! `GET /users`: the tenant's people, newest first.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::UserId;
use interlock_protocol::identity::{UserList, limits, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UserListParams {
    limit: Option<usize>,
    after: Option<UserId>,
}

/// List people
///
/// Newest first.
#[utoipa::path(
    get,
    path = path::USERS,
    tag = "users",
    params(UserListParams),
    responses((status = 200, description = "A page of people.", body = UserList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<UserListParams>,
) -> Result<Json<UserList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = state.for_tenant(caller.tenant).users(params.after, limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.id);
    Ok(Json(UserList { users: view::users(&state, &caller, rows).await?, next_after }))
}
