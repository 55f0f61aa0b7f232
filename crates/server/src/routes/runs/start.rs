//! `POST /runs`: makes a run of a plan, once per idempotency key and once per active subject.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::state::Initiator;
use interlock_engine::{EncodedPlan, IdempotencyKey, StartRun};
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
    let runs::StartRun { plan, inputs, workspace, subject, labels, priority } = body;
    let key = idempotency_key(&headers)?;
    let mut request = StartRun::new(caller.tenant, EncodedPlan::new(plan)?, inputs);
    request.workspace = caller.workspace_of_start(workspace)?.unwrap_or(request.workspace);
    request.subject = subject;
    request.labels = labels;
    request.priority = priority;
    request.idempotency = key.map(|key| IdempotencyKey { client: caller.client.to_string(), key });
    request.by = caller.context(Initiator::User);
    request.started_by = caller.responsible().map(str::to_owned);

    let started = state.engine().start(request).await?;
    let location = path::RUN.replace("{run}", &started.run.to_string());
    let body = Json(runs::Started { run_id: started.run });
    let mut response = (StatusCode::CREATED, [(header::LOCATION, location)], body).into_response();
    if started.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
