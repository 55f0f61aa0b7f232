//! `POST /signals`: a message for the runs that wait for its type and key, now or within a day, and for the workflows
//! that its type starts.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use interlock_core::json::Hash;
use interlock_core::trigger::cloudevent::CloudEvent;
use interlock_engine::IdempotencyKey;
use interlock_engine::commands::announce::{Announced, Origin};
use interlock_engine::commands::signal::{SignalRequest, Signaled};
use interlock_protocol::runs::{Signal, Signaled as SignalReceipt, path};
use interlock_store::{SignalScope, SourceId};

use super::event::SignalBody;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made, key_of};
use crate::identity::Caller;
use crate::routes::webhooks::view::runs_of;
use crate::state::AppState;
use crate::trace;

/// Send a signal to the runs that wait for its type and key
///
/// Either `{type, key, payload, source_id, broadcast}`, or an event of CloudEvents 1.0 as `application/cloudevents+json` or with
/// its attributes in `ce-` headers: its `type` is the signal's, its `subject` the key, its `source` and `id` tell repeats
/// apart; an extension `broadcast` that is true makes it one for all runs that wait. One that no run waits for yet is
/// kept for a day.
#[utoipa::path(
    post,
    path = path::SIGNALS,
    tag = "signals",
    params(IdempotencyHeaders),
    request_body = Signal,
    responses(
        (status = 201, description = "The signal is stored.", body = SignalReceipt),
        (status = 200, description = "The same signal came before; nothing changes.", body = SignalReceipt),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn send(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    signal: SignalBody<Signal>,
) -> Result<Response, ApiError> {
    let asked = match signal {
        SignalBody::Plain(signal) => signal,
        SignalBody::Event(CloudEvent { kind, subject, source_id, data, broadcast }) => {
            let key = subject.ok_or_else(|| {
                ApiError::invalid("the event has no `subject`, which is the key that a wait is found by")
            })?;
            Signal { signal: kind, key, payload: data, source_id: Some(source_id), broadcast }
        }
    };
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: SOURCE };
    let request = request(&keyed, asked.clone()).await?;
    let by = caller.responsible().map(str::to_owned);
    let origin = Origin { by, makers: caller.makers(), trace: trace::context(&headers) };
    let announce = async |keep: Keep<'_>| {
        let kept = |announced| keep.answer(&Made::from(answer(announced)));
        let announced = Box::pin(state.signals().announce_answering(request, origin, kept)).await?;
        Ok(answer(announced))
    };
    Box::pin(keyed.once_keeping(&asked, announce)).await
}

/// What kind of request a signal is, for its idempotency record.
pub const SOURCE: &str = "signal";

/// A signal that its sender does not name is named by the request's key: if a server dies on the way, a repeated
/// request stores no second one.
pub async fn request(keyed: &IdempotentRequest<'_>, signal: Signal) -> Result<SignalRequest, ApiError> {
    let Signal { signal: signal_type, key, payload, source_id, broadcast } = signal;
    let by_key = |IdempotencyKey { client, key }| {
        let name = format!("idempotency:{}", Hash::of(format!("{client}\n{key}").as_bytes()));
        SourceId { scope: SignalScope::Request, name }
    };
    let source_id = match source_id {
        Some(source_id) => Some(SourceId::of_tenant(source_id)),
        None => key_of(keyed.state, keyed.headers, keyed.caller).await?.map(by_key),
    };
    Ok(SignalRequest { tenant: keyed.caller.tenant, signal_type, key, payload, source_id, broadcast, run: None })
}

/// New signals are created; one that came before changes nothing.
pub fn answer(announced: Announced) -> (StatusCode, SignalReceipt) {
    let (runs, skipped) = runs_of(announced.runs, announced.skipped);
    match announced.signaled {
        Signaled::Stored(id) => {
            (StatusCode::CREATED, SignalReceipt { signal_id: Some(id), duplicate: false, runs, skipped })
        }
        Signaled::Duplicate => (StatusCode::OK, SignalReceipt { signal_id: None, duplicate: true, runs, skipped }),
    }
}
