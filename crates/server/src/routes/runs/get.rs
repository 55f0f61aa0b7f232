//! `GET /runs/{run}`: one run. With `wait_ms` the answer waits for the run's end, but no longer than that.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::time::Millis;
use interlock_protocol::runs::{RunView, limits, path};
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::request::{Named, Params, bounded};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GetParams {
    wait_ms: Option<Millis>,
}

/// Look at one run
///
/// With `wait_ms` the answer waits for the run's end, but no longer than that.
#[utoipa::path(
    get,
    path = path::RUN,
    tag = "runs",
    params(("run" = RunId, Path), GetParams),
    responses((status = 200, description = "The run.", body = RunView)),
)]
pub async fn get(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    Params(params): Params<GetParams>,
) -> Result<Json<RunView>, ApiError> {
    if params.wait_ms.is_some() {
        let ending = timeout(bounded(params.wait_ms, limits::WAIT_MAX), state.engine().wait_for_end(tenant, run));
        if let Some(Ok(ended)) = state.shutdown().run_until_cancelled(ending).await {
            ended?;
        }
    }
    let overview = state.reads(tenant).run_overview(tenant, run).await?;
    overview.map(|row| Json(view::run(&state, row))).ok_or_else(|| ApiError::unknown_run(run))
}
