//! `GET /keys/{key}`: one key, without its text.

use axum::Json;
use interlock_core::ids::KeyId;
use interlock_protocol::identity::{KeyView, path};

use super::view::{self, OfKey};

/// Look at a key
#[utoipa::path(
    get,
    path = path::KEY,
    tag = "keys",
    params(("key" = KeyId, Path)),
    responses((status = 200, description = "The key, without its text.", body = KeyView)),
)]
pub async fn get(OfKey(row): OfKey) -> Json<KeyView> {
    Json(view::key(row))
}
