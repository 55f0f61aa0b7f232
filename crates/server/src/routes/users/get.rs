//! `GET /users/{user}`: one person.

use axum::Json;
use interlock_core::ids::UserId;
use interlock_protocol::identity::{UserView, path};

use super::view::{self, OfUser};

/// Look at a person
#[utoipa::path(
    get,
    path = path::USER,
    tag = "users",
    params(("user" = UserId, Path)),
    responses((status = 200, description = "The person.", body = UserView)),
)]
pub async fn get(OfUser(row): OfUser) -> Json<UserView> {
    Json(view::user(row))
}
