//! `GET /workflows`: workflows by name.

use axum::Json;
use axum::extract::State;
use interlock_protocol::workflows::{WorkflowList, limits, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::cut;
use crate::state::AppState;

const PAGE_DEFAULT: usize = 50;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WorkflowListParams {
    limit: Option<usize>,
    /// The name behind which the page begins.
    after: Option<String>,
}

/// List workflows
///
/// By name, with the newest version of each.
#[utoipa::path(
    get,
    path = path::WORKFLOWS,
    tag = "workflows",
    params(WorkflowListParams),
    responses((status = 200, description = "A page of workflows.", body = WorkflowList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<WorkflowListParams>,
) -> Result<Json<WorkflowList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let store = state.for_tenant(caller.tenant);
    // One more than asked for says whether there is another page.
    let mut rows = store.list_workflows(params.after.as_deref(), limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.name.clone());
    Ok(Json(WorkflowList { workflows: view::workflows(&state, &caller, rows).await?, next_after }))
}
