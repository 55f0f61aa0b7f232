//! `POST /schedules/{schedule}/trigger`: a run of it now, whatever the clock says.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::state::Initiator;
use interlock_engine::schedules::TriggerSchedule;
use interlock_protocol::runs::{self, Started};
use interlock_protocol::schedules::path;

use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, key_of, mark};
use crate::identity::Caller;
use crate::metrics::Hit;
use crate::request::ScheduleName;
use crate::state::AppState;

/// Start a run of a schedule now
///
/// The overlap policy does not apply. Sent again under the same `Idempotency-Key`, it names the run of the first time, also
/// where the schedule is gone.
#[utoipa::path(
    post,
    path = path::TRIGGER,
    tag = "schedules",
    params(ScheduleName, IdempotencyHeaders),
    responses(
        (status = 201, description = "The run.", body = Started),
        (status = 409, description = "The subject has an active run."),
        (status = 422, description = "The workflow does not take the schedule's inputs."),
    ),
)]
pub async fn trigger(
    State(state): State<AppState>,
    caller: Caller,
    ScheduleName(named): ScheduleName,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let key = key_of(&state, &headers, &caller).await?;
    let keyed = key.is_some();
    let request = TriggerSchedule {
        tenant: caller.tenant,
        schedule: named,
        within: caller.workspace.as_deref().map(str::to_owned),
        idempotency: key,
        by: caller.context(Initiator::User),
    };
    let started = state.schedules().trigger(request).await;
    if keyed {
        let hit = match &started {
            Ok(started) if started.replayed => Hit::Replayed,
            Ok(_) => Hit::New,
            Err(error) => Hit::of(error),
        };
        state.metrics().idempotency("schedule triggers", hit);
    }
    let started = started?;
    let location = runs::path::RUN.replace("{run}", &started.run.to_string());
    let body = Json(Started { run_id: started.run, admission: started.admission });
    let mut response = (StatusCode::CREATED, [(header::LOCATION, location)], body).into_response();
    mark(&mut response, started.replayed);
    Ok(response)
}
