//! `POST /agent/poll`: a worker with free slots asks for steps, and waits for them for a while.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::agent::{Poll, Polled, limits, path};
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::identity::{Caller, ShownCredential};
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
    credential: ShownCredential,
    headers: HeaderMap,
    Body(poll): Body<Poll>,
) -> Result<Json<Polled>, ApiError> {
    let workers = state.workers();
    workers.check_session(caller.session_owner(), poll.session).await?;
    if state.repeated_calls().is_repeated_poll(poll.session, &headers, state.now()) {
        // What the first one handed out may be with another worker by now, so it is not handed out again.
        return Ok(Json(Polled::default()));
    }
    if let Some(round_trip) = poll.round_trip_ms {
        workers.measured(poll.session, round_trip);
    }
    let wait = bounded(Some(poll.wait_ms), limits::POLL_WAIT_MAX);
    // A key that is revoked meanwhile ends the wait.
    let ended = async {
        let _ = timeout(wait, credential.taken_back(state.identity(), Permission::Work)).await;
    };
    let polling = Box::pin(workers.poll_until(poll.session, poll.max as usize, ended));
    // A server that stops answers with nothing, and the worker asks the next one.
    match state.shutdown().run_until_cancelled(polling).await {
        Some(assignments) => {
            let (assignments, notice) = (assignments?, workers.notice(poll.session));
            let checked = credential.still_may(state.identity(), Permission::Work).await;
            if !matches!(checked, Ok(true)) {
                workers.not_delivered(poll.session, assignments).await;
                return Err(checked.err().unwrap_or_else(ApiError::unauthorized));
            }
            let offers = workers.take_run_offers(poll.session);
            let is_empty = assignments.is_empty() && offers.is_empty();
            Ok(Json(Polled { notice: notice.filter(|_| is_empty), assignments, offers }))
        }
        None => Ok(Json(Polled::default())),
    }
}
