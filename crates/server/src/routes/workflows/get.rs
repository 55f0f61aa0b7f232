//! `GET /workflows/{workflow}`: the newest version, with its source.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_engine::EngineError;
use interlock_protocol::workflows::{VersionDetail, path};

use super::etag::{self, CacheHeaders};
use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::WorkflowName;
use crate::state::AppState;

/// Look at a workflow
///
/// Its newest version, with the file as it was applied. With `If-None-Match` the answer is 304 if nothing has changed.
#[utoipa::path(
    get,
    path = path::WORKFLOW,
    tag = "workflows",
    params(WorkflowName, CacheHeaders),
    responses(
        (status = 200, description = "The workflow.", body = VersionDetail, headers(("etag" = String))),
        (status = 304, description = "The caller has it already."),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    WorkflowName(name): WorkflowName,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = caller.tenant;
    let unknown = || EngineError::UnknownWorkflow { workflow: name.clone(), version: None };
    let store = state.for_tenant(tenant);
    let head = store.workflow(&name).await?.ok_or_else(unknown)?;
    let tag = etag::of(head.latest_version, head.source_hash);
    if etag::has(&headers, &tag)? {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag.header())]).into_response());
    }
    let version = store.workflow_version(&name, head.latest_version).await?;
    let body = view::detail(&state, &caller, version.ok_or_else(unknown)?, head.disabled).await?;
    Ok(([(header::ETAG, tag.header())], Json(body)).into_response())
}
