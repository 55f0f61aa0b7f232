//! `POST /schedules/{schedule}/resume`: its slots count again, from now on.

use axum::Json;
use axum::extract::State;
use interlock_protocol::schedules::{ScheduleView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfSchedule;
use crate::state::AppState;

/// Resume a schedule
#[utoipa::path(
    post,
    path = path::RESUME,
    tag = "schedules",
    params(OfSchedule),
    responses((status = 200, description = "The schedule.", body = ScheduleView)),
)]
pub async fn resume(
    State(state): State<AppState>,
    caller: Caller,
    OfSchedule(named): OfSchedule,
) -> Result<Json<ScheduleView>, ApiError> {
    let row = state.schedules().resume(caller.tenant, &named, &caller.actor()).await?;
    Ok(Json(view::schedule(&state, &caller, row).await?))
}
