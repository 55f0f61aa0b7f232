//! `POST /agent/heartbeat`: a worker renews its session, and hears what it must stop.

use axum::Json;
use axum::extract::State;
use interlock_core::limits::REASON_BYTES_MAX;
use interlock_engine::EngineError;
use interlock_protocol::agent::{Heartbeat, Renewed, further_fields, limits, path};

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
    let Heartbeat { session, held, draining, keeps, canary, round_trip_ms } = heartbeat;
    if keeps.len() > limits::KEPT_RUNS_MAX {
        return Err(ApiError::invalid(format!("a worker keeps at most {} runs", limits::KEPT_RUNS_MAX)));
    }
    if held.len() > limits::SLOTS_MAX as usize {
        return Err(ApiError::invalid(format!("a worker holds at most {} attempts", limits::SLOTS_MAX)));
    }
    let why = canary.as_ref().and_then(|canary| canary.why.as_ref());
    if why.is_some_and(|why| why.len() > REASON_BYTES_MAX) {
        return Err(ApiError::invalid(format!("what became of a canary has at most {REASON_BYTES_MAX} bytes")));
    }
    let lease_ms = state.session_lease();
    let known = state.workers().check_session(caller.session_owner(), session).await;
    let renewed = match known {
        Ok(()) => state.workers().heartbeat(session, &held, draining).await,
        Err(error) => Err(error),
    };
    match renewed {
        Ok(stop) => {
            if let Some(canary) = &canary {
                state.workers().canary(session, canary).await?;
            }
            if let Some(round_trip) = round_trip_ms {
                state.workers().measured(session, round_trip);
            }
            let prove = state.workers().asks_for_canary(session).await?;
            let drain = state.workers().is_drained(session);
            let notice = state.workers().notice(session);
            let over = state.workers().over(session, &keeps).await?;
            let takes = further_fields();
            Ok(Json(Renewed { lease_ms, stop, known: true, drain, notice, over, prove, takes }))
        }
        Err(EngineError::SessionGone) => Ok(Json(Renewed {
            lease_ms,
            stop: held,
            known: false,
            drain: false,
            notice: None,
            over: keeps,
            prove: false,
            takes: Vec::new(),
        })),
        Err(error) => Err(error.into()),
    }
}
