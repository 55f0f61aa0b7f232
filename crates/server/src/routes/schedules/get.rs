//! `GET /schedules/{schedule}`: one schedule, and what became of its latest slots.

use axum::Json;
use axum::extract::State;
use interlock_protocol::schedules::{ScheduleDetail, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfSchedule;
use crate::state::AppState;

const SLOTS_SHOWN: usize = 20;

/// Look at a schedule and its latest slots
#[utoipa::path(
    get,
    path = path::SCHEDULE,
    tag = "schedules",
    params(OfSchedule),
    responses((status = 200, description = "The schedule.", body = ScheduleDetail)),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfSchedule(named): OfSchedule,
) -> Result<Json<ScheduleDetail>, ApiError> {
    let row = state.schedules().get(caller.tenant, &named).await?;
    let slots = state.for_tenant(caller.tenant).slots(row.id, SLOTS_SHOWN).await?;
    let slots = slots.into_iter().map(view::past).collect();
    Ok(Json(ScheduleDetail { schedule: view::schedule(&state, &caller, row).await?, slots }))
}
