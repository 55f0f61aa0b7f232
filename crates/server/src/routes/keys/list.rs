//! `GET /keys`: the tenant's keys, newest first, revoked ones too.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::KeyId;
use interlock_protocol::identity::{KeyList, limits, path};
use interlock_store::KeyRow;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut, read_at_once};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct KeyListParams {
    limit: Option<usize>,
    after: Option<KeyId>,
}

/// List keys
///
/// Newest first, revoked ones too.
#[utoipa::path(
    get,
    path = path::KEYS,
    tag = "keys",
    params(KeyListParams),
    responses((status = 200, description = "A page of keys.", body = KeyList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<KeyListParams>,
) -> Result<Json<KeyList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = seen_by(&state, &caller, params.after, limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.id);
    Ok(Json(KeyList { keys: view::keys(&state, &caller, rows).await?, next_after }))
}

/// The keys that exist for the caller, page by page until there are enough.
async fn seen_by(
    state: &AppState,
    caller: &Caller,
    mut after: Option<KeyId>,
    wanted: usize,
) -> Result<Vec<KeyRow>, ApiError> {
    let (store, size) = (state.for_tenant(caller.tenant), read_at_once(caller, wanted));
    let mut rows = Vec::new();
    loop {
        let page = store.keys(after, size).await?;
        let full = page.len() == size;
        after = page.last().map(|row| row.id);
        rows.extend(page.into_iter().filter(|row| caller.sees(row.workspace.as_deref())));
        if !full || rows.len() >= wanted {
            rows.truncate(wanted);
            return Ok(rows);
        }
    }
}
