//! `GET /keys/{key}`: one key, without its text.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::KeyId;
use interlock_protocol::identity::{KeyView, path};

use super::view::{self, OfKey};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Look at a key
#[utoipa::path(
    get,
    path = path::KEY,
    tag = "keys",
    params(("key" = KeyId, Path)),
    responses((status = 200, description = "The key, without its text.", body = KeyView)),
)]
pub async fn get(State(state): State<AppState>, caller: Caller, OfKey(row): OfKey) -> Result<Json<KeyView>, ApiError> {
    view::named(&state, &caller, row).await.map(Json)
}
