//! `POST /agent/{session}/complete-step`: what became of an attempt; the answer may bring the run's next step.

use axum::Json;
use axum::extract::State;
use interlock_protocol::agent::{Completed, Report, path};
use interlock_protocol::body::ReportBody;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfSession};
use crate::state::AppState;

/// Hand in what became of an attempt
///
/// The answer may bring the run's next step, claimed for the same session.
#[utoipa::path(
    post,
    path = path::COMPLETE,
    tag = "agent",
    params(OfSession),
    request_body = Report,
    responses((status = 200, description = "The report is recorded, now or before.", body = Completed)),
)]
pub async fn complete(
    State(state): State<AppState>,
    caller: Caller,
    OfSession(session): OfSession,
    Body(ReportBody(report)): Body<ReportBody>,
) -> Result<Json<Completed>, ApiError> {
    caller.check_tenant(report.at)?;
    let completed = state.workers().complete(session, report).await?;
    Ok(Json(Completed { next: completed.next, recorded: completed.recorded }))
}
