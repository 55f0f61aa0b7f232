//! `GET /runs/{run}/steps`: the whole plan, with where each step stands.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::{StepList, path};

use super::view;
use crate::api_error::ApiError;
use crate::request::Named;
use crate::state::AppState;

/// The whole plan, with where each step stands
#[utoipa::path(
    get,
    path = path::STEPS,
    tag = "runs",
    params(Named),
    responses((status = 200, description = "The steps in order.", body = StepList)),
)]
pub async fn steps(State(state): State<AppState>, named: Named) -> Result<Json<StepList>, ApiError> {
    let rows = state.for_tenant(named.tenant).steps(named.run).await?;
    // A plan has at least one step.
    if rows.is_empty() {
        return Err(ApiError::unknown_run(named.run));
    }
    Ok(Json(StepList { steps: rows.into_iter().map(|row| view::step(&state, named.run, row)).collect() }))
}
