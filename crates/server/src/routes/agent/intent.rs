//! `POST /agent/{session}/effects`: a worker is about to act on another system.

use axum::Json;
use axum::extract::State;
use interlock_protocol::agent::{EffectAnswer, EffectIntent, path};
use interlock_protocol::body::{AnswerBody, IntentBody};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfSession};
use crate::state::AppState;

/// Ask to perform an effect
///
/// The intent is durable when the answer arrives.
#[utoipa::path(
    post,
    path = path::EFFECTS,
    tag = "agent",
    params(OfSession),
    request_body = EffectIntent,
    responses((status = 200, description = "Perform it now, or: it was performed before.", body = EffectAnswer)),
)]
pub async fn intent(
    State(state): State<AppState>,
    caller: Caller,
    OfSession(session): OfSession,
    Body(IntentBody(intent)): Body<IntentBody>,
) -> Result<Json<AnswerBody>, ApiError> {
    caller.check_tenant(intent.at)?;
    Ok(Json(AnswerBody(state.workers().intent(session, intent).await?)))
}
