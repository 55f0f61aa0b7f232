//! `POST /bulk`: acts on every run that a filter matches, and on no other. The answer comes at once; the work goes on
//! behind it, whatever becomes of this server.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::json::Json;
use interlock_engine::commands::bulk::BulkRequest;
use interlock_protocol::bulk::{BulkView, StartBulk, path};

use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::Caller;
use crate::request::{Body, reason};
use crate::routes::runs::filter;
use crate::state::AppState;

/// Cancel, retry or resume many runs
///
/// Ids are fixed when the job is made: runs that match later are not touched. Retrying a run that has ended makes a new
/// run from it.
#[utoipa::path(
    post,
    path = path::BULK,
    tag = "bulk",
    params(IdempotencyHeaders),
    request_body = StartBulk,
    responses(
        (status = 201, description = "The job is made and under way.", body = BulkView),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn start(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<StartBulk>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "bulk" };
    let asked = body.clone();
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, body, keep))).await
}

async fn add(state: &AppState, caller: &Caller, body: StartBulk, keep: Keep<'_>) -> Result<Made<BulkView>, ApiError> {
    let StartBulk { action, filter, expected_count, reason: because, rollback } = body;
    // Which jobs a caller sees follows from the workspace that stands in their filters.
    let filter = filter::confined(filter, caller)?;
    let filter_text = Json::of(&filter).map_err(|error| ApiError::invalid(error.to_string()))?;
    let request = BulkRequest {
        tenant: caller.tenant,
        action,
        filter: filter::checked(filter, caller)?,
        filter_text,
        reason: reason(because)?,
        rollback,
        by: caller.operator(),
        expected_count,
    };
    let runs = state.runs();
    let job = runs.draft_bulk(request).await?;
    let made = Made::created(super::view(job.clone()));
    runs.start_bulk(caller.tenant, job, &caller.actor(), keep.answer(&made)?).await?;
    Ok(made)
}
