//! `GET /schedules`: by name.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::limits;
use interlock_protocol::schedules::{ScheduleList, path};
use interlock_store::ScheduleRow;
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{cut, read_at_once};
use crate::state::AppState;

const PAGE_DEFAULT: usize = 100;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScheduleListParams {
    limit: Option<usize>,
    /// The name behind which the page begins.
    after: Option<String>,
}

/// List schedules by name
#[utoipa::path(
    get,
    path = path::SCHEDULES,
    tag = "schedules",
    params(ScheduleListParams),
    responses((status = 200, description = "A page of schedules.", body = ScheduleList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<ScheduleListParams>,
) -> Result<Json<ScheduleList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut rows = seen_by(&state, &caller, params.after.unwrap_or_default(), limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.spec.name.clone());
    let schedules = view::schedules(&state, &caller, rows).await?;
    Ok(Json(ScheduleList { schedules, next_after }))
}

/// The schedules that exist for the caller, page by page until there are enough.
async fn seen_by(
    state: &AppState,
    caller: &Caller,
    mut after: String,
    wanted: usize,
) -> Result<Vec<ScheduleRow>, ApiError> {
    let (store, size) = (state.for_tenant(caller.tenant), read_at_once(caller, wanted));
    let mut rows = Vec::new();
    loop {
        let page = store.schedules(&after, size).await?;
        let full = page.len() == size;
        after = page.last().map(|row| row.spec.name.clone()).unwrap_or_default();
        rows.extend(page.into_iter().filter(|row| caller.sees(Some(&row.spec.workspace))));
        if !full || rows.len() >= wanted {
            rows.truncate(wanted);
            return Ok(rows);
        }
    }
}
