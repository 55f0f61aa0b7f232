//! `POST /runs`: makes a run of a workflow or a plan, once per idempotency key and once per active subject.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::state::{Admission, Initiator};
use interlock_engine::{EncodedPlan, IdempotencyKey, StartRun, StartWorkflow};
use interlock_protocol::runs::{self, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, IdempotencyHeaders, idempotency_key};
use crate::state::AppState;

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Start a run
///
/// The run, its whole plan and its first event are durable when the answer comes. Under an `Idempotency-Key` the same
/// request again names the same run and makes no second one.
#[utoipa::path(
    post,
    path = path::RUNS,
    tag = "runs",
    params(IdempotencyHeaders),
    request_body = runs::StartRun,
    responses((
        status = 201,
        description = "The run is made, or was made by the same request before.",
        body = runs::Started,
        headers(
            ("location" = String, description = "Where the run is found."),
            ("idempotency-replayed" = Option<String>, description = "`true` if the request was made before."),
        ),
    )),
)]
pub async fn start(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<runs::StartRun>,
) -> Result<Response, ApiError> {
    let runs::StartRun { workflow, version, plan, inputs, workspace, subject, on_conflict, labels, priority } = body;
    let client = caller.client.to_string();
    let idempotency = idempotency_key(&headers)?.map(|key| IdempotencyKey { client, key });
    let by = caller.context(Initiator::User);
    let workspace = caller.workspace_of_start(workspace)?;
    let started_by = caller.responsible().map(str::to_owned);
    let started = match (workflow, plan) {
        (Some(workflow), None) => {
            let start = StartWorkflow::new(caller.tenant, workflow, inputs);
            let start =
                StartWorkflow {
                    version, workspace, subject, on_conflict, labels, priority, started_by, idempotency, by, ..start
                };
            state.engine().start_workflow(start).await?
        }
        (None, Some(plan)) if version.is_none() => {
            let mut start = StartRun::new(caller.tenant, EncodedPlan::new(plan)?, inputs);
            start.workspace = workspace.unwrap_or(start.workspace);
            start.on_conflict = on_conflict.unwrap_or(start.on_conflict);
            let priority = priority.unwrap_or(0);
            state.engine().start(StartRun { subject, labels, priority, started_by, idempotency, by, ..start }).await?
        }
        (None, Some(_)) => return Err(ApiError::malformed("`version` belongs to a `workflow`, not to a `plan`")),
        _ => return Err(ApiError::malformed("give either `workflow`, the name of one, or `plan`")),
    };
    let location = path::RUN.replace("{run}", &started.run.to_string());
    let body = Json(runs::Started { run_id: started.run, admission: started.admission });
    let status = match started.admission {
        Admission::Started | Admission::Queued => StatusCode::CREATED,
        Admission::Signaled => StatusCode::ACCEPTED,
    };
    let mut response = (status, [(header::LOCATION, location)], body).into_response();
    if started.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
