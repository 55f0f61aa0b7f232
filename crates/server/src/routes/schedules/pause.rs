//! `POST /schedules/{schedule}/pause`: no slot runs until it is resumed.

use axum::Json;
use axum::extract::State;
use interlock_protocol::schedules::{PauseSchedule, ScheduleView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfSchedule, reason};
use crate::state::AppState;

/// Pause a schedule
///
/// Slots that pass meanwhile are left out.
#[utoipa::path(
    post,
    path = path::PAUSE,
    tag = "schedules",
    params(OfSchedule),
    request_body = PauseSchedule,
    responses((status = 200, description = "The schedule.", body = ScheduleView)),
)]
pub async fn pause(
    State(state): State<AppState>,
    caller: Caller,
    OfSchedule(named): OfSchedule,
    Body(pause): Body<PauseSchedule>,
) -> Result<Json<ScheduleView>, ApiError> {
    let why = pause.reason.map(reason).transpose()?;
    let row = state.schedules().pause(caller.tenant, &named, why, &caller.actor()).await?;
    Ok(Json(view::schedule(&state, &caller, row).await?))
}
