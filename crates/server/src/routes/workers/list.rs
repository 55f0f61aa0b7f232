//! `GET /workers`: the tenant's workers.

use axum::Json;
use axum::extract::State;
use interlock_protocol::operations::{WorkerList, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorkerListParams {
    /// Also those that have signed off, or were lost and have no steps any more.
    #[serde(default)]
    all: bool,
}

/// List workers, those last heard of first
///
/// Those that live, and those that were lost with steps; at most 500.
#[utoipa::path(
    get,
    path = path::WORKERS,
    tag = "operations",
    operation_id = "workers",
    params(WorkerListParams),
    responses((status = 200, description = "The tenant's workers.", body = WorkerList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<WorkerListParams>,
) -> Result<Json<WorkerList>, ApiError> {
    Ok(Json(WorkerList { workers: view::workers(&state, caller.tenant, params.all).await? }))
}
