//! `GET /changes`: changes that wait for a second admin, newest first.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::ChangeId;
use interlock_protocol::changes::{ChangeList, path};
use interlock_protocol::identity::limits;
use interlock_store::{ChangePage, ChangeState};
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
pub struct ChangeListParams {
    /// Also those that are decided on or over.
    #[serde(default)]
    all: bool,
    limit: Option<usize>,
    after: Option<ChangeId>,
}

/// List changes
///
/// Those that wait for a second admin, newest first; with `all`, the others too.
#[utoipa::path(
    get,
    path = path::CHANGES,
    tag = "changes",
    params(ChangeListParams),
    responses((status = 200, description = "A page of changes.", body = ChangeList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ChangeListParams>,
) -> Result<Json<ChangeList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let only = (!params.all).then_some(ChangeState::Requested);
    let page = ChangePage { state: only, after: params.after, limit: limit + 1 };
    let mut rows = state.for_tenant(caller.tenant).changes(page).await?;
    let next_after = cut(&mut rows, limit, |row| row.id);
    let now = state.now();
    let listed = rows.into_iter().filter(|row| params.all || row.expires_at > now);
    Ok(Json(ChangeList { changes: listed.map(|row| view::change(row, now)).collect(), next_after }))
}
