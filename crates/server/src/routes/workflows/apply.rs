//! `POST /workflows` and `PUT /workflows/{workflow}`: a file becomes a version, unless it is the newest one already.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::json::Hash;
use interlock_engine::{ApplyError, ApplyWorkflow};
use interlock_protocol::workflows::{Applied, File, limits, path};
use interlock_store::WorkflowVersionRow;
use interlock_workflow::diagnostic::Diagnostics;

use super::etag::{self, ConditionHeaders};
use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::Caller;
use crate::request::{Body, WorkflowName};
use crate::state::AppState;

/// How a file without a name is called in messages.
const UNNAMED: &str = "workflow.yaml";

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
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "workflows" };
    let asked = (file.clone(), conditions(&headers));
    let put = async |keep: Keep<'_>| store(&state, request(&caller, &headers, file, None)?, keep).await;
    Box::pin(keyed.once_keeping(&asked, put)).await
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
    let request = request(&caller, &headers, file, Some(name))?;
    Ok(store(&state, request, Keep::nothing(&state)).await?.into_response())
}

/// The conditions are a part of what is asked.
fn conditions(headers: &HeaderMap) -> Vec<String> {
    let given = [header::IF_MATCH, header::IF_NONE_MATCH].map(|name| headers.get_all(name).into_iter());
    given.into_iter().flatten().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// How a file is called in messages.
pub(super) fn name_of(file: Option<String>) -> Result<String, ApiError> {
    let file = file.unwrap_or_else(|| UNNAMED.to_owned());
    if file.len() > limits::FILE_BYTES_MAX {
        let (length, max) = (file.len(), limits::FILE_BYTES_MAX);
        return Err(ApiError::invalid(format!("`file` is {length} bytes long, the limit is {max}")));
    }
    Ok(file)
}

fn request(caller: &Caller, headers: &HeaderMap, file: File, name: Option<String>) -> Result<ApplyWorkflow, ApiError> {
    Ok(ApplyWorkflow {
        tenant: caller.tenant,
        file: name_of(file.file)?,
        source: file.source,
        name,
        expected: etag::expected(headers)?,
        person: caller.responsible().map(str::to_owned),
        by: caller.actor(),
    })
}

async fn store(state: &AppState, request: ApplyWorkflow, keep: Keep<'_>) -> Result<Made<Applied>, ApiError> {
    let kept = |row: &WorkflowVersionRow, warnings: &Diagnostics| {
        let version = AppliedVersion {
            name: &row.name,
            version: row.version,
            created: true,
            source_hash: row.source_hash,
            plan_hash: row.plan_hash,
        };
        keep.answer(&version.made(warnings))
    };
    let applied = state.workflows().apply_answering(request, kept).await?;
    let version = AppliedVersion {
        name: &applied.version.name,
        version: applied.version.version,
        created: applied.created,
        source_hash: applied.version.source_hash,
        plan_hash: applied.version.plan.hash,
    };
    Ok(version.made(&applied.warnings))
}

/// What the answer says of the newest version.
struct AppliedVersion<'a> {
    name: &'a str,
    version: u32,
    created: bool,
    source_hash: Hash,
    plan_hash: Hash,
}

impl AppliedVersion<'_> {
    fn made(&self, warnings: &Diagnostics) -> Made<Applied> {
        let body = Applied {
            workflow: self.name.to_owned(),
            version: self.version,
            created: self.created,
            source_hash: self.source_hash.to_string(),
            plan_hash: self.plan_hash.to_string(),
            warnings: view::diagnostics(&warnings.list),
        };
        let status = if self.created { StatusCode::CREATED } else { StatusCode::OK };
        let location = path::WORKFLOW.replace("{workflow}", self.name);
        let etag = etag::of(self.version, self.source_hash).quoted();
        Made::from((status, body)).at(location).with(header::ETAG, etag)
    }
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
