//! `GET /executions/{session_id}`: one execution, with its steps, approvals and what the steps have answered.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_protocol::executions::{Execution, path};

use super::view;
use crate::api_error::ApiError;
use crate::request::NamedRun;
use crate::routes::approvals::view::approval;
use crate::state::AppState;

/// Look at an execution
#[utoipa::path(
    get,
    path = path::EXECUTION,
    tag = "executions",
    params(("session_id" = RunId, Path)),
    responses((status = 200, description = "The execution.", body = Execution)),
)]
pub async fn get(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
) -> Result<Json<Execution>, ApiError> {
    let store = state.for_tenant(tenant);
    let unknown = || ApiError::unknown_run(run);
    let found = store.load_run(run).await?.ok_or_else(unknown)?;
    let mut outputs = Vec::new();
    for (number, step) in (1..).zip(&found.steps) {
        if let Some(output) = &step.output {
            // What stands beside its row is fetched, one at a time, so that its end can be shown.
            let output = state.at_hand(tenant, output.clone()).await?;
            outputs.push(view::output(number, &output));
        }
    }
    let mut approvals = Vec::new();
    for row in store.approvals_of(run).await? {
        approvals.push(approval(&state, &found, row).await?);
    }
    Ok(Json(view::execution(&found, approvals, outputs)))
}
