//! `POST /workflows` and `PUT /workflows/{workflow}`: a file becomes a version, unless it is the newest one already.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::json::Hash;
use interlock_engine::{ApplyError, ApplyWorkflow};
use interlock_protocol::workflows::{Applied, File, path};
use interlock_store::WorkflowVersionRow;
use interlock_workflow::diagnostic::Diagnostics;

use super::etag::{self, ConditionHeaders};
use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, Keep, Keyed, Made};
use crate::identity::Caller;
use crate::request::{Body, WorkflowName};
use crate::state::AppState;

/// How a file without a name is called in messages.
pub const UNNAMED: &str = "workflow.yaml";

/// Apply a workflow file
///
/// The workflow's name stands in the file. A file that is the newest version already changes nothing. Runs keep the
/// version that they were started with.
#[utoipa::path(
    post,
    path = path::WORKFLOWS,
    tag = "workflows",
    params(IdempotencyHeaders, ConditionHeaders),
    request_body = File,
    responses(
        (status = 201, description = "A new version.", body = Applied, headers(("etag" = String))),
        (status = 200, description = "The file is the newest version already.", body = Applied, headers(("etag" = String))),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn apply(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(file): Body<File>,
) -> Result<Response, ApiError> {
    let keyed = Keyed { state: &state, headers: &headers, caller: &caller, source: "workflows" };
    let asked = (file.clone(), conditions(&headers));
    Box::pin(keyed.once_keeping(&asked, |keep| store(&state, &caller, &headers, file, Goal { name: None, keep }))).await
}

/// Apply a workflow file under its name
///
/// Like `POST`, and refused if the file has another name. `If-Match` guards against replacing what one has not seen.
#[utoipa::path(
    put,
    path = path::WORKFLOW,
    tag = "workflows",
    params(WorkflowName, ConditionHeaders),
    request_body = File,
    responses(
        (status = 201, description = "A new version.", body = Applied, headers(("etag" = String))),
        (status = 200, description = "The file is the newest version already.", body = Applied, headers(("etag" = String))),
    ),
)]
pub async fn put(
    State(state): State<AppState>,
    caller: Caller,
    WorkflowName(name): WorkflowName,
    headers: HeaderMap,
    Body(file): Body<File>,
) -> Result<Response, ApiError> {
    let goal = Goal { name: Some(name), keep: Keep::nothing(&state) };
    Ok(store(&state, &caller, &headers, file, goal).await?.into_response())
}

/// The conditions are a part of what is asked.
fn conditions(headers: &HeaderMap) -> Vec<String> {
    let given = [header::IF_MATCH, header::IF_NONE_MATCH].map(|name| headers.get_all(name).into_iter());
    given.into_iter().flatten().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// What else a request says of the file.
struct Goal<'a> {
    /// The name that it must have.
    name: Option<String>,
    keep: Keep<'a>,
}

async fn store(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    file: File,
    Goal { name, keep }: Goal<'_>,
) -> Result<Made<Applied>, ApiError> {
    let request = ApplyWorkflow {
        tenant: caller.tenant,
        file: file.file.unwrap_or_else(|| UNNAMED.to_owned()),
        source: file.source,
        name,
        expected: etag::expected(headers)?,
        person: caller.responsible().map(str::to_owned),
        by: caller.actor(),
    };
    let kept = |row: &WorkflowVersionRow, warnings: &Diagnostics| {
        let hashes = Hashes { source: row.source_hash, plan: row.plan_hash };
        keep.answer(&made(&row.name, row.version, true, hashes, warnings))
    };
    let applied = state.engine().workflows().apply_answering(request, kept).await?;
    let version = &applied.version;
    let hashes = Hashes { source: version.source_hash, plan: version.plan.hash };
    Ok(made(&version.name, version.version, applied.created, hashes, &applied.warnings))
}

struct Hashes {
    source: Hash,
    plan: Hash,
}

fn made(name: &str, version: u32, created: bool, hashes: Hashes, warnings: &Diagnostics) -> Made<Applied> {
    let body = Applied {
        workflow: name.to_owned(),
        version,
        created,
        source_hash: hashes.source.to_string(),
        plan_hash: hashes.plan.to_string(),
        warnings: view::diagnostics(&warnings.list),
    };
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let location = path::WORKFLOW.replace("{workflow}", &body.workflow);
    Made::from((status, body)).at(location).with(header::ETAG, etag::of(version, hashes.source).quoted())
}

impl From<ApplyError> for ApiError {
    fn from(error: ApplyError) -> Self {
        let detail = error.to_string();
        match error {
            ApplyError::Invalid(found) => Self::invalid_workflow(detail, view::diagnostics(&found.list)),
            ApplyError::OtherName { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "WORKFLOW_NAME_MISMATCH", detail)
            }
            ApplyError::Changed { .. } => Self::new(StatusCode::PRECONDITION_FAILED, "WORKFLOW_CHANGED", detail),
            ApplyError::Engine(error) => error.into(),
        }
    }
}
