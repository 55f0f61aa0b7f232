//! `DELETE /schedules/{schedule}`: no slot of it runs any more. Its runs stay.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::schedules::path;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfSchedule;
use crate::state::AppState;

/// Remove a schedule
///
/// One that stands in a workflow's file is removed there.
#[utoipa::path(
    delete,
    path = path::SCHEDULE,
    tag = "schedules",
    params(OfSchedule),
    responses((status = 204, description = "It is gone."), (status = 422, description = "It stands in a file.")),
)]
pub async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    OfSchedule(named): OfSchedule,
) -> Result<StatusCode, ApiError> {
    state.schedules().remove(caller.tenant, &named, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
