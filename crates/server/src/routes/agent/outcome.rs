//! `POST /agent/{session}/outcomes`: what became of an effect.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::agent::{EffectOutcome, path};
use interlock_protocol::body::OutcomeBody;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfSession};
use crate::state::AppState;

/// Say what became of an effect
#[utoipa::path(
    post,
    path = path::OUTCOMES,
    tag = "agent",
    params(OfSession),
    request_body = EffectOutcome,
    responses((status = 204, description = "Recorded.")),
)]
pub async fn outcome(
    State(state): State<AppState>,
    caller: Caller,
    OfSession(session): OfSession,
    Body(OutcomeBody(outcome)): Body<OutcomeBody>,
) -> Result<StatusCode, ApiError> {
    caller.check_tenant(outcome.at)?;
    state.workers().outcome(session, outcome).await?;
    Ok(StatusCode::NO_CONTENT)
}
