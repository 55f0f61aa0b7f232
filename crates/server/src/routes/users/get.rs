//! `GET /users/{user}`: one person.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::UserId;
use interlock_protocol::identity::{UserView, path};

use super::view::{self, OfUser};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Look at a person
#[utoipa::path(
    get,
    path = path::USER,
    tag = "users",
    params(("user" = UserId, Path)),
    responses((status = 200, description = "The person.", body = UserView)),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfUser(row): OfUser,
) -> Result<Json<UserView>, ApiError> {
    view::named(&state, &caller, row).await.map(Json)
}
