//! `POST /workflows/{workflow}/disable` and `/enable`: whether a workflow takes starts. Its runs go on.

use axum::Json;
use axum::extract::State;
use interlock_engine::EngineError;
use interlock_protocol::runs::Nothing;
use interlock_protocol::workflows::{WorkflowView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, WorkflowName};
use crate::state::AppState;

/// Disable a workflow
///
/// It takes no more starts, by whatever way; runs that are active go on.
#[utoipa::path(
    post,
    path = path::DISABLE,
    tag = "workflows",
    params(WorkflowName),
    request_body = Nothing,
    responses((status = 200, description = "The workflow as it stands.", body = WorkflowView)),
)]
pub async fn disable(
    State(state): State<AppState>,
    caller: Caller,
    WorkflowName(name): WorkflowName,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<WorkflowView>, ApiError> {
    set(&state, &caller, name, true).await
}

/// Enable a workflow
///
/// It takes starts again.
#[utoipa::path(
    post,
    path = path::ENABLE,
    tag = "workflows",
    params(WorkflowName),
    request_body = Nothing,
    responses((status = 200, description = "The workflow as it stands.", body = WorkflowView)),
)]
pub async fn enable(
    State(state): State<AppState>,
    caller: Caller,
    WorkflowName(name): WorkflowName,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Json<WorkflowView>, ApiError> {
    set(&state, &caller, name, false).await
}

async fn set(state: &AppState, caller: &Caller, name: String, disabled: bool) -> Result<Json<WorkflowView>, ApiError> {
    let tenant = caller.tenant;
    state.workflows().set_disabled(tenant, &name, disabled, &caller.actor()).await?;
    let head = state.for_tenant(tenant).workflow(&name).await?;
    let row = head.ok_or(EngineError::UnknownWorkflow { workflow: name, version: None })?;
    Ok(Json(view::workflow(state, caller, row).await?))
}
