//! `GET /workflows/{workflow}/versions`: all versions, newest first.

use axum::Json;
use axum::extract::State;
use interlock_engine::EngineError;
use interlock_protocol::workflows::{VersionList, limits, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{WorkflowName, cut};
use crate::state::AppState;

const PAGE_DEFAULT: usize = 50;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VersionsParams {
    limit: Option<usize>,
    /// The version below which the page begins.
    before: Option<u32>,
}

/// List the versions of a workflow
///
/// Newest first.
#[utoipa::path(
    get,
    path = path::VERSIONS,
    tag = "workflows",
    params(WorkflowName, VersionsParams),
    responses((status = 200, description = "A page of versions.", body = VersionList)),
)]
pub async fn versions(
    State(state): State<AppState>,
    caller: Caller,
    WorkflowName(name): WorkflowName,
    Params(params): Params<VersionsParams>,
) -> Result<Json<VersionList>, ApiError> {
    let tenant = caller.tenant;
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = state.for_tenant(tenant).workflow_versions(&name, params.before, limit + 1).await?;
    if rows.is_empty() && params.before.is_none() {
        return Err(EngineError::UnknownWorkflow { workflow: name, version: None }.into());
    }
    let next_before = cut(&mut rows, limit, |row| row.version);
    Ok(Json(VersionList { versions: view::versions(&state, &caller, rows).await?, next_before }))
}
