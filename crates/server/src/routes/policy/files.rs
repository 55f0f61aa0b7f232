//! `GET /policy/files`: what a version consists of.

use axum::Json;
use axum::extract::State;
use interlock_protocol::policy::{PolicyFiles, path};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FilesParams {
    /// The version; the policy that comes with the server where omitted.
    version: Option<u32>,
}

/// The files of a version of the policy
#[utoipa::path(
    get,
    path = path::FILES,
    tag = "policy",
    params(FilesParams),
    responses((status = 200, description = "Names of files and their texts.", body = PolicyFiles)),
)]
pub async fn files(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<FilesParams>,
) -> Result<Json<PolicyFiles>, ApiError> {
    let files = state.policies().files(caller.tenant, params.version).await?;
    Ok(Json(PolicyFiles { files }))
}
