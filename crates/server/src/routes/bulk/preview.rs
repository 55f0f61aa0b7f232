//! `POST /bulk/preview`: how many runs a filter matches, and the newest of them.

use axum::Json;
use axum::extract::State;
use interlock_protocol::bulk::{BulkPreview, PreviewBulk, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::routes::runs::{filter, view};
use crate::state::AppState;

/// See which runs a filter matches now
#[utoipa::path(
    post,
    path = path::PREVIEW,
    tag = "bulk",
    request_body = PreviewBulk,
    responses((status = 200, description = "The number of runs, and some of them.", body = BulkPreview)),
)]
pub async fn preview(
    State(state): State<AppState>,
    caller: Caller,
    Body(PreviewBulk { action, filter }): Body<PreviewBulk>,
) -> Result<Json<BulkPreview>, ApiError> {
    let filter = filter::checked(filter, &caller)?;
    let matching = state.runs().matching(caller.tenant, &filter, action).await?;
    let sample = matching.sample.into_iter().map(|row| view::run(&state, row)).collect();
    Ok(Json(BulkPreview { count: matching.runs.len() as u64, sample }))
}
