//! `POST /executions`: works on a ticket, once per idempotency key and one execution at a time.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::governance::stricter::Stricter;
use interlock_core::state::{Admission, Initiator};
use interlock_engine::commands::ticket::StartForTicket;
use interlock_protocol::executions::{CreateExecution, Created, path};

use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, key_of, mark};
use crate::identity::Caller;
use crate::metrics::Hit;
use crate::request::{Body, SESSION_ID};
use crate::state::AppState;
use crate::trace;

/// Work on a ticket
///
/// Makes a run whose subject is the ticket, of the workflow that is named, or of the one whose `on.ticket` takes it.
#[utoipa::path(
    post,
    path = path::EXECUTIONS,
    tag = "executions",
    params(IdempotencyHeaders),
    request_body = CreateExecution,
    responses(
        (
            status = 201,
            description = "The execution is made, or was made by the same request before.",
            body = Created,
            headers(
                ("location" = String, description = "Where the execution is found."),
                ("idempotency-replayed" = Option<String>, description = "`true` if the request was made before."),
            ),
        ),
        (
            status = 202,
            description = "Another execution works on the ticket and has been told: the workflow says \
                           `on_conflict: signal`.",
            body = Created,
        ),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateExecution>,
) -> Result<Response, ApiError> {
    let idempotency = key_of(&state, &headers, &caller).await?;
    let keyed = idempotency.is_some();
    let start = StartForTicket {
        tenant: caller.tenant,
        ticket: body.ticket_id,
        workflow: body.runbook_id,
        stricter: Stricter { profile: body.environment_profile, mode: body.validation_mode },
        fields: body.ticket,
        inputs: body.inputs,
        workspace: caller.workspace_for(body.workspace)?,
        started_by: caller.responsible().map(str::to_owned),
        idempotency,
        trace: trace::context(&headers),
        by: caller.context(Initiator::User),
    };
    let started = state.runs().start_for_ticket(start).await;
    if keyed {
        let hit = match &started {
            Ok(started) if started.replayed => Hit::Replayed,
            Ok(_) => Hit::New,
            Err(error) => Hit::of(error),
        };
        state.metrics().idempotency("executions", hit);
    }
    let started = started?;
    let status = match started.admission {
        Admission::Started | Admission::Queued => StatusCode::CREATED,
        Admission::Signaled => StatusCode::ACCEPTED,
    };
    let location = path::EXECUTION.replace(&format!("{{{SESSION_ID}}}"), &started.run.to_string());
    let body = Json(Created { session_id: started.run });
    let mut response = (status, [(header::LOCATION, location)], body).into_response();
    mark(&mut response, started.replayed);
    Ok(response)
}
