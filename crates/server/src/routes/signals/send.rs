//! `POST /signals`: a message for whoever waits for its type and key, now or within a day, and for the workflows that
//! its type starts.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::cloudevent::CloudEvent;
use interlock_engine::commands::announce::Announced;
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_protocol::runs::{Signal, Signaled as Answer, path};
use interlock_protocol::webhooks::DeliveredRun;

use super::event::SignalBody;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Send a signal to whoever waits for its type and key
///
/// Either `{type, key, payload, source_id}`, or an event of CloudEvents 1.0 as `application/cloudevents+json` or with
/// its attributes in `ce-` headers: its `type` is the signal's, its `subject` the key, its `source` and `id` tell repeats
/// apart. One that nobody waits for yet is kept for a day.
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
    signal: SignalBody<Signal>,
) -> Result<(StatusCode, Json<Answer>), ApiError> {
    let (signal_type, key, payload, source_id) = match signal {
        SignalBody::Plain(Signal { signal, key, payload, source_id }) => (signal, key, payload, source_id),
        SignalBody::Event(CloudEvent { kind, subject, source_id, data }) => {
            let key = subject.ok_or_else(|| {
                ApiError::invalid("the event has no `subject`, which is the key that a wait is found by")
            })?;
            (kind, key, data, Some(source_id))
        }
    };
    let request = SignalRequest { tenant: caller.tenant, signal_type, key, payload, source_id };
    Ok(answer(state.engine().announce(request).await?))
}

/// New signals are created; one that came before changes nothing.
pub fn answer(announced: Announced) -> (StatusCode, Json<Answer>) {
    let runs = announced.runs.into_iter().map(|(workflow, run_id)| DeliveredRun { workflow, run_id }).collect();
    match announced.signaled {
        Signaled::Stored(id) => (StatusCode::CREATED, Json(Answer { signal_id: Some(id), duplicate: false, runs })),
        Signaled::Duplicate => (StatusCode::OK, Json(Answer { signal_id: None, duplicate: true, runs })),
    }
}
