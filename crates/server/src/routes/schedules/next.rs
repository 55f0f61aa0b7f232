//! `GET /schedules/{schedule}/next`: when it will run, in its zone and in UTC.

use axum::Json;
use axum::extract::State;
use interlock_protocol::schedules::{Upcoming, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::OfSchedule;
use crate::state::AppState;

const COUNT_DEFAULT: usize = 10;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NextParams {
    /// How many; at most 100.
    count: Option<usize>,
}

/// Preview the next slots of a schedule
#[utoipa::path(
    get,
    path = path::NEXT,
    tag = "schedules",
    params(OfSchedule, NextParams),
    responses((status = 200, description = "The next slots, also of a paused schedule.", body = Upcoming)),
)]
pub async fn next(
    State(state): State<AppState>,
    caller: Caller,
    OfSchedule(named): OfSchedule,
    Params(params): Params<NextParams>,
) -> Result<Json<Upcoming>, ApiError> {
    let row = state.schedules().get(caller.tenant, &named).await?;
    let (row, slots) = view::next_slots(&state, row, params.count.unwrap_or(COUNT_DEFAULT)).await?;
    Ok(Json(Upcoming { name: row.spec.name, timezone: row.spec.timezone, slots }))
}
