//! `GET /bulk/{job}/failures`: the runs that a job left as they were, and why.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::JobId;
use interlock_protocol::bulk::{BulkFailureList, BulkFailureView, path};
use interlock_protocol::runs::limits::PAGE_MAX;
use serde::Deserialize;
use utoipa::IntoParams;

use super::find;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{OfJob, PAGE_DEFAULT, cut};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FailureParams {
    limit: Option<usize>,
    /// The position of the last one of the page before.
    after: Option<u32>,
}

/// What went wrong, run by run
#[utoipa::path(
    get,
    path = path::FAILURES,
    tag = "bulk",
    params(("job" = JobId, Path), FailureParams),
    responses((status = 200, description = "Failures in the job's order.", body = BulkFailureList)),
)]
pub async fn failures(
    State(state): State<AppState>,
    caller: Caller,
    OfJob(job): OfJob,
    Params(params): Params<FailureParams>,
) -> Result<Json<BulkFailureList>, ApiError> {
    let store = state.for_tenant(caller.tenant);
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    find(&state, &caller, job).await?;
    let mut failures = store.bulk_failures(job, params.after, limit + 1).await?;
    let next_after = cut(&mut failures, limit, |failure| failure.position);
    let failures = failures
        .into_iter()
        .map(|failure| BulkFailureView {
            position: failure.position,
            run_id: failure.run,
            code: failure.code,
            message: failure.message,
        })
        .collect();
    Ok(Json(BulkFailureList { failures, next_after }))
}
