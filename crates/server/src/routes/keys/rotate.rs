//! `POST /keys/{key}/rotate`: a new text for the same client. The old one works on for as long as was asked for.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use interlock_core::ids::KeyId;
use interlock_engine::EngineError;
use interlock_protocol::identity::{CreatedKey, RotateKey, limits, path};
use interlock_store::{KeyRotated, KeyRow};

use super::view::{self, OfKey};
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::key::KeyText;
use crate::identity::{Caller, NewKey, note};
use crate::request::Body;
use crate::state::AppState;

/// Rotate a key
///
/// A new text for the same client. The old one works on for as long as was asked for.
#[utoipa::path(
    post,
    path = path::KEY_ROTATE,
    tag = "keys",
    params(IdempotencyHeaders, ("key" = KeyId, Path)),
    request_body = RotateKey,
    responses(
        (status = 201, description = "The new key, with its text.", body = CreatedKey),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn rotate(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    OfKey(old): OfKey,
    Body(rotate): Body<RotateKey>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "key rotations" };
    let asked = (old.id, rotate);
    Box::pin(keyed.once_keeping(&asked, |keep| replace(&state, &caller, old, rotate, keep))).await
}

async fn replace(
    state: &AppState,
    caller: &Caller,
    old: KeyRow,
    rotate: RotateKey,
    keep: Keep<'_>,
) -> Result<Made<CreatedKey>, ApiError> {
    caller.check_charge_of(old.installation)?;
    let now = state.now();
    let over = old.revoked_at.is_some() || old.expires_at.is_some_and(|at| at <= now);
    let gone = || ApiError::new(StatusCode::CONFLICT, "KEY_OVER", "the key is revoked or expired; make a new one");
    if over {
        return Err(gone());
    }
    let new = NewKey {
        name: old.name.clone(),
        workspace: old.workspace.clone(),
        installation: old.installation,
        owner: old.owner.clone(),
        requests_per_min: old.requests_per_min,
        expires_at: old.expires_at,
        created_by: Some(caller.maker_of_key(old.owner.as_deref())?),
        ..NewKey::new(old.tenant, "", old.roles)
    };
    let text = KeyText::random();
    let row = new.row(state.fresh(), state.identity().secret(), &text, Some(old.client));
    let old_until = now + rotate.overlap_ms.unwrap_or_default().min(limits::ROTATE_OVERLAP_MAX);
    let made = Made::created(view::created(caller, row.clone(), &text)).showing_once(&["text"]);
    let what = note::by(caller, "key.rotated", old.id, &serde_json::json!({ "name": row.name, "new": row.id }));
    let rotation = interlock_store::RotateKey { key: row, old: old.id, old_until };
    match state.identity().write_answering(caller.tenant, rotation, what, keep.answer(&made)?).await? {
        KeyRotated::Rotated => Ok(made),
        KeyRotated::Gone => Err(gone()),
        KeyRotated::Duplicate => Err(EngineError::Overloaded.into()),
    }
}
