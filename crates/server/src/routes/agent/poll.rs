//! `POST /agent/poll`: a worker with free slots asks for steps, and waits for them for a while.

use axum::Json;
use axum::extract::State;
use interlock_protocol::agent::{Poll, Polled, limits, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, bounded};
use crate::state::AppState;

/// Ask for steps, and wait for them for a while
#[utoipa::path(
    post,
    path = path::POLL,
    tag = "agent",
    request_body = Poll,
    responses((status = 200, description = "Claimed steps; empty when nothing came in time.", body = Polled)),
)]
pub async fn poll(
    State(state): State<AppState>,
    caller: Caller,
    Body(poll): Body<Poll>,
) -> Result<Json<Polled>, ApiError> {
    let workers = state.workers();
    workers.check_session(caller.session_owner(), poll.session).await?;
    let wait = bounded(Some(poll.wait_ms), limits::POLL_WAIT_MAX);
    let polling = Box::pin(workers.poll(poll.session, poll.max as usize, wait));
    // A server that stops answers with nothing, and the worker asks the next one.
    match state.shutdown().run_until_cancelled(polling).await {
        Some(assignments) => {
            let (assignments, notice) = (assignments?, workers.notice(poll.session));
            Ok(Json(Polled { notice: notice.filter(|_| assignments.is_empty()), assignments }))
        }
        None => Ok(Json(Polled::default())),
    }
}
