//! `POST /agent/{session}/output`: what a step has written.

use axum::Json;
use axum::extract::State;
use interlock_protocol::agent::{OutputBatch, OutputTaken, path};
use interlock_protocol::body::OutputBody;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfSession};
use crate::state::AppState;

/// Hand in what a step has written
///
/// The chunks are stored when the answer arrives. Send the next batch of an attempt then: a batch that comes twice is stored
/// once, and one whose predecessor is missing is refused.
#[utoipa::path(
    post,
    path = path::OUTPUT,
    tag = "agent",
    params(OfSession),
    request_body = OutputBatch,
    responses((status = 200, description = "Stored, now or before.", body = OutputTaken)),
)]
pub async fn output(
    State(state): State<AppState>,
    caller: Caller,
    OfSession(session): OfSession,
    Body(OutputBody(batch)): Body<OutputBody>,
) -> Result<Json<OutputTaken>, ApiError> {
    caller.check_tenant(batch.at)?;
    Ok(Json(state.workers().output(session, batch).await?))
}
