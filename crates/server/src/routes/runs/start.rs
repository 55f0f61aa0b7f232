//! `POST /runs`: makes a run of a workflow or a plan, once per idempotency key and once per active subject.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::json::Json as Payload;
use interlock_core::plan::rules::OnConflict;
use interlock_core::run::labels;
use interlock_core::state::{Admission, Initiator};
use interlock_core::trace::TraceContext;
use interlock_engine::{EngineError, IdempotencyKey, StartRun, StartWorkflow, Started};
use interlock_protocol::runs::{self, path};
use serde::Deserialize;

use crate::api_error::ApiError;
use crate::confinement;
use crate::idempotency::{IdempotencyHeaders, key_of, mark};
use crate::identity::Caller;
use crate::metrics::Hit;
use crate::request::Body;
use crate::state::AppState;
use crate::trace;

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
    responses(
        (
            status = 201,
            description = "The run is made, or was made by the same request before.",
            body = runs::Started,
            headers(
                ("location" = String, description = "Where the run is found."),
                ("idempotency-replayed" = Option<String>, description = "`true` if the request was made before."),
            ),
        ),
        (
            status = 202,
            description = "Another run holds the subject and has been told (`on_conflict: signal`); `run_id` is that run's.",
            body = runs::Started,
        ),
    ),
)]
pub async fn start(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<StartBody>,
) -> Result<Response, ApiError> {
    let idempotency = key_of(&state, &headers, &caller).await?;
    let keyed = idempotency.is_some();
    let started = make(&state, &caller, StartInput { idempotency, trace: trace::context(&headers), body }).await;
    if keyed {
        let hit = match &started {
            Ok(started) if started.replayed => Hit::Replayed,
            Ok(_) => Hit::New,
            Err(Refused::Engine(error)) => Hit::of(error),
            Err(Refused::Request(_)) => Hit::Failed,
        };
        state.metrics().idempotency("api", hit);
    }
    Ok(created(started?))
}

/// A start as it was sent: its body, key and trace.
struct StartInput {
    idempotency: Option<IdempotencyKey>,
    trace: TraceContext,
    body: StartBody,
}

/// Why no run is made: the request is wrong, or the engine says no.
enum Refused {
    Request(ApiError),
    Engine(EngineError),
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self::Request(error)
    }
}

impl From<EngineError> for Refused {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Request(error) => error,
            Refused::Engine(error) => error.into(),
        }
    }
}

async fn make(state: &AppState, caller: &Caller, asked: StartInput) -> Result<Started, Refused> {
    let StartInput { idempotency, trace, body } = asked;
    let StartBody { workflow, version, plan, inputs, workspace, subject, on_conflict, labels, priority } = body;
    let by = caller.context(Initiator::User);
    let workspace = caller.workspace_for(workspace)?;
    let started_by = caller.responsible().map(str::to_owned);
    labels::check_names(labels.keys()).map_err(ApiError::from)?;
    match (workflow, plan) {
        (Some(workflow), None) => {
            let start = StartWorkflow::new(caller.tenant, workflow, inputs);
            let start =
                StartWorkflow { version, workspace, subject, on_conflict, labels, priority, started_by, ..start };
            let start = StartWorkflow { trigger: caller.trigger(), idempotency, trace, by, ..start };
            Ok(state.runs().start_workflow(start).await?)
        }
        (None, Some(plan)) if version.is_none() => {
            if let Some(workspace) = &caller.workspace {
                return Err(confinement::plan_refused(workspace).into());
            }
            let mut start = StartRun::new(caller.tenant, state.plan_of(caller.tenant, &plan).await?, inputs);
            start.workspace = workspace.unwrap_or(start.workspace);
            start.on_conflict = on_conflict.unwrap_or(start.on_conflict);
            let priority = priority.unwrap_or(0);
            let start = StartRun { subject, labels, priority, started_by, idempotency, ..start };
            Ok(state.runs().start_given(StartRun { trigger: caller.trigger(), trace, by, ..start }).await?)
        }
        (None, Some(_)) => Err(ApiError::malformed("`version` belongs to a `workflow`, not to a `plan`").into()),
        _ => Err(ApiError::malformed("give either `workflow`, the name of one, or `plan`").into()),
    }
}

/// A new run, or the one that the same request made before.
pub fn created(started: Started) -> Response {
    let location = path::RUN.replace("{run}", &started.run.to_string());
    let body = Json(runs::Started { run_id: started.run, admission: started.admission });
    let status = match started.admission {
        Admission::Started | Admission::Queued => StatusCode::CREATED,
        Admission::Signaled => StatusCode::ACCEPTED,
    };
    let mut response = (status, [(header::LOCATION, location)], body).into_response();
    mark(&mut response, started.replayed);
    response
}

/// What [`runs::StartRun`] says, with the plan as it was written: a repeated request need not wait until the plan is
/// parsed again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartBody {
    workflow: Option<String>,
    version: Option<u32>,
    plan: Option<Payload>,
    #[serde(default = "no_inputs")]
    inputs: Payload,
    workspace: Option<String>,
    subject: Option<String>,
    on_conflict: Option<OnConflict>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    priority: Option<i32>,
}

fn no_inputs() -> Payload {
    Payload::trusted("{}")
}
