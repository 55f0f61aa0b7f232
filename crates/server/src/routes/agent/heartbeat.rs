//! `POST /agent/heartbeat`: a worker renews its session, and hears what it must stop.

use axum::Json;
use axum::extract::State;
use interlock_engine::EngineError;
use interlock_protocol::agent::{Heartbeat, Renewed, limits, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Renew a session, and hear what to stop
#[utoipa::path(
    post,
    path = path::HEARTBEAT,
    tag = "agent",
    request_body = Heartbeat,
    responses((status = 200, description = "The lease is renewed, or the session is gone.", body = Renewed)),
)]
pub async fn heartbeat(
    State(state): State<AppState>,
    caller: Caller,
    Body(heartbeat): Body<Heartbeat>,
) -> Result<Json<Renewed>, ApiError> {
    let Heartbeat { session, held, draining, keeps } = heartbeat;
    if keeps.len() > limits::KEPT_RUNS_MAX {
        return Err(ApiError::invalid(format!("a worker keeps at most {} runs", limits::KEPT_RUNS_MAX)));
    }
    if held.len() > limits::SLOTS_MAX as usize {
        return Err(ApiError::invalid(format!("a worker holds at most {} attempts", limits::SLOTS_MAX)));
    }
    let lease_ms = state.session_lease();
    let known = state.workers().check_session(caller.session_owner(), session).await;
    let renewed = match known {
        Ok(()) => state.workers().heartbeat(session, &held, draining).await,
        Err(error) => Err(error),
    };
    match renewed {
        Ok(stop) => {
            let drain = state.workers().is_drained(session);
            let notice = state.workers().notice(session);
            let over = state.workers().over(session, &keeps).await?;
            Ok(Json(Renewed { lease_ms, stop, known: true, drain, notice, over }))
        }
        Err(EngineError::SessionGone) => {
            Ok(Json(Renewed { lease_ms, stop: held, known: false, drain: false, notice: None, over: keeps }))
        }
        Err(error) => Err(error.into()),
    }
}
