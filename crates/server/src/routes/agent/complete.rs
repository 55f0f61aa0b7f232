//! `POST /agent/{session}/complete-step`: what became of an attempt; the answer may bring the run's next step.

use axum::Json;
use axum::extract::State;
use interlock_protocol::agent::Completed;
use interlock_protocol::body::ReportBody;

use crate::api_error::ApiError;
use crate::request::{Body, OfSession};
use crate::state::AppState;

pub async fn complete(
    State(state): State<AppState>,
    OfSession(session): OfSession,
    Body(ReportBody(report)): Body<ReportBody>,
) -> Result<Json<Completed>, ApiError> {
    let completed = state.engine().complete(session, report).await?;
    Ok(Json(Completed { next: completed.next, recorded: completed.recorded }))
}
