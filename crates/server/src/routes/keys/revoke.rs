//! `DELETE /keys/{key}`: from now on the key is refused. Its row stays, for the history.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::KeyId;
use interlock_protocol::identity::{KeyView, path};
use interlock_store::RevokeKey;

use super::view::{self, OfKey};
use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::state::AppState;

/// Revoke a key
///
/// From now on the key is refused. Its row stays, for the history.
#[utoipa::path(
    delete,
    path = path::KEY,
    tag = "keys",
    params(("key" = KeyId, Path)),
    responses((status = 200, description = "The key as it was.", body = KeyView)),
)]
pub async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    OfKey(mut row): OfKey,
) -> Result<Json<KeyView>, ApiError> {
    caller.check_charge_of(row.installation)?;
    let at = state.now();
    let revoke = RevokeKey { tenant: row.tenant, key: row.id, at };
    let what = note::by(&caller, "key.revoked", row.id, &serde_json::json!({ "name": row.name }));
    state.identity().write_noted(caller.tenant, revoke, what).await?;
    row.revoked_at = row.revoked_at.or(Some(at));
    view::named(&state, &caller, row).await.map(Json)
}
