//! `GET /schedules`: by name.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::limits;
use interlock_protocol::schedules::{ScheduleList, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::cut;
use crate::state::AppState;

const PAGE_DEFAULT: usize = 100;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    limit: Option<usize>,
    /// The name behind which the page begins.
    after: Option<String>,
}

/// List schedules by name
#[utoipa::path(
    get,
    path = path::SCHEDULES,
    tag = "schedules",
    params(ListParams),
    responses((status = 200, description = "A page of schedules.", body = ScheduleList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<ScheduleList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let after = params.after.unwrap_or_default();
    let mut rows = state.reads(caller.tenant).schedules(caller.tenant, &after, limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.spec.name.clone());
    let now = state.engine().now();
    Ok(Json(ScheduleList { schedules: rows.into_iter().map(|row| view::schedule(row, now)).collect(), next_after }))
}
