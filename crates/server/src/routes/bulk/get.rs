//! `GET /bulk/{job}`: how far a job is.

use axum::Json;
use axum::extract::State;
use interlock_protocol::bulk::{BulkView, path};

use super::{find, view};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfJob;
use crate::state::AppState;

/// How far a job is
#[utoipa::path(
    get,
    path = path::JOB,
    tag = "bulk",
    params(OfJob),
    responses((status = 200, description = "The job.", body = BulkView)),
)]
pub async fn get(State(state): State<AppState>, caller: Caller, OfJob(job): OfJob) -> Result<Json<BulkView>, ApiError> {
    find(&state, &caller, job).await.map(|job| Json(view(job)))
}
