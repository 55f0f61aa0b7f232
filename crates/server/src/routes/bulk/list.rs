//! `GET /bulk`: jobs, newest first.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::JobId;
use interlock_protocol::bulk::{BulkList, path};
use interlock_protocol::runs::limits::PAGE_MAX;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{is_seen_by, view};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JobListParams {
    limit: Option<usize>,
    after: Option<JobId>,
}

/// List jobs, newest first
#[utoipa::path(
    get,
    path = path::BULK,
    tag = "bulk",
    params(JobListParams),
    responses((status = 200, description = "A page of jobs.", body = BulkList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<JobListParams>,
) -> Result<Json<BulkList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let mut jobs = Vec::new();
    let mut after = params.after;
    while jobs.len() <= limit {
        let page = state.for_tenant(caller.tenant).bulk_jobs(after, PAGE_MAX).await?;
        let full = page.len() == PAGE_MAX;
        after = page.last().map(|job| job.id);
        jobs.extend(page.into_iter().filter(|job| is_seen_by(job, &caller)));
        if !full {
            break;
        }
    }
    let next_after = cut(&mut jobs, limit, |job| job.id);
    Ok(Json(BulkList { jobs: jobs.into_iter().map(view).collect(), next_after }))
}
