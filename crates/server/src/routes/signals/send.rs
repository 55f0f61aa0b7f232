//! `POST /signals`: a message for whoever waits for its type and key, now or within a day.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_protocol::runs::{Signal, Signaled as Answer, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Send a signal to whoever waits for its type and key
///
/// One that nobody waits for yet is kept for a day.
#[utoipa::path(
    post,
    path = path::SIGNALS,
    tag = "signals",
    request_body = Signal,
    responses(
        (status = 201, description = "The signal is stored.", body = Answer),
        (status = 200, description = "The same signal came before; nothing changes.", body = Answer),
    ),
)]
pub async fn send(
    State(state): State<AppState>,
    caller: Caller,
    Body(signal): Body<Signal>,
) -> Result<(StatusCode, Json<Answer>), ApiError> {
    let Signal { signal, key, payload, source_id } = signal;
    let request = SignalRequest { tenant: caller.tenant, signal_type: signal, key, payload, source_id };
    Ok(answer(state.engine().signal(request).await?))
}

/// New signals are created; one that came before changes nothing.
pub fn answer(signaled: Signaled) -> (StatusCode, Json<Answer>) {
    match signaled {
        Signaled::Stored(id) => (StatusCode::CREATED, Json(Answer { signal_id: Some(id), duplicate: false })),
        Signaled::Duplicate => (StatusCode::OK, Json(Answer { signal_id: None, duplicate: true })),
    }
}
