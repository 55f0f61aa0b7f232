//! `GET /workflows/{workflow}/versions/{version}`: one version.

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
use crate::request::{VersionNumber, WorkflowName};
use crate::state::AppState;

/// Look at one version of a workflow
///
/// A version never changes.
#[utoipa::path(
    get,
    path = path::VERSION,
    tag = "workflows",
    params(WorkflowName, VersionNumber, CacheHeaders),
    responses(
        (status = 200, description = "The version.", body = VersionDetail, headers(("etag" = String))),
        (status = 304, description = "The caller has it already."),
    ),
)]
pub async fn version(
    State(state): State<AppState>,
    caller: Caller,
    WorkflowName(name): WorkflowName,
    VersionNumber(number): VersionNumber,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let tenant = caller.tenant;
    let store = state.for_tenant(tenant);
    let unknown = || EngineError::UnknownWorkflow { workflow: name.clone(), version: Some(number) };
    let row = store.workflow_version(&name, number).await?.ok_or_else(unknown)?;
    let tag = etag::of(row.version, row.source_hash);
    if etag::has(&headers, &tag)? {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag.header())]).into_response());
    }
    let disabled = store.workflow(&name).await?.is_some_and(|head| head.disabled);
    Ok(([(header::ETAG, tag.header())], Json(view::detail(&state, &caller, row, disabled).await?)).into_response())
}
