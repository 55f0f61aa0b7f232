//! `GET /audit/checkpoint`: the signed head of the tenant's log.

use axum::Json;
use axum::extract::State;
use interlock_protocol::audit::{CheckpointView, path};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CheckpointParams {
    /// Which of the tenant's logs; the present one where omitted.
    log: Option<u64>,
}

/// The signed head of the audit log
///
/// A C2SP checkpoint. Send it elsewhere now and then: a log that was cut off or written anew is found out by a checkpoint
/// that is kept outside this installation.
#[utoipa::path(
    get,
    path = path::CHECKPOINT,
    tag = "audit",
    params(CheckpointParams),
    responses(
        (status = 200, description = "The head.", body = CheckpointView),
        (status = 404, description = "There is no such log."),
    ),
)]
pub async fn checkpoint(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<CheckpointParams>,
) -> Result<Json<CheckpointView>, ApiError> {
    let (log, checkpoint) = state.audit().checkpoint(caller.tenant, params.log).await?;
    Ok(Json(CheckpointView { log, checkpoint }))
}
