//! `GET /delegations`: who decides for whom, newest first.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::DelegationId;
use interlock_core::time::Timestamp;
use interlock_protocol::delegations::{DelegationList, path};
use interlock_protocol::identity::limits;
use interlock_store::DelegationPage;
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
pub struct DelegationListParams {
    /// Also those that are over or were revoked.
    #[serde(default)]
    all: bool,
    limit: Option<usize>,
    after: Option<DelegationId>,
}

/// List delegations
///
/// Those in force and those to come, newest first; with `all`, those that are over too.
#[utoipa::path(
    get,
    path = path::DELEGATIONS,
    tag = "delegations",
    params(DelegationListParams),
    responses((status = 200, description = "A page of delegations.", body = DelegationList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<DelegationListParams>,
) -> Result<Json<DelegationList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let now = state.now();
    let over_by = if params.all { Timestamp(0) } else { now };
    let page = DelegationPage { over_by, after: params.after, limit: limit + 1 };
    let mut rows = state.for_tenant(caller.tenant).delegations(page).await?;
    let next_after = cut(&mut rows, limit, |row| row.id);
    let mut delegations: Vec<_> = rows.into_iter().map(|row| view::delegation(row, now)).collect();
    view::named(&state, &caller, &mut delegations).await?;
    Ok(Json(DelegationList { delegations, next_after }))
}
