//! `WS /agent/channel`: a worker's calls over one connection. Each frame goes the way that a request of its own would go,
//! past the guard too: a key that is revoked meanwhile gets nothing more done, and its channel is closed. So are the channels of
//! a tenant that switches them off.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use axum::extract::{Extension, Request, State};
use axum::http::{self, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::{SinkExt as _, StreamExt as _};
use interlock_core::ids::TenantId;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::agent::path;
use interlock_protocol::call;
use interlock_protocol::channel::{AnswerFrame, CALL_CONTEXT, CallFrame, limits as channel_limits};
use interlock_protocol::live::close;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::calls::Calls;
use crate::api_error::ApiError;
use crate::connections::PeerAddress;
use crate::identity::{Caller, ShownCredential};
use crate::routes::live::place::Upgrade;
use crate::seats::{Full, Seat};
use crate::state::AppState;
use crate::tls::PeerWorker;

/// What calls of a channel that the server has not begun with may hold in memory, all together. The longest one fits.
const BYTES_IN_FLIGHT: usize = 1 << 20;
/// The least that a call counts for.
const CALL_BYTES_MIN: usize = BYTES_IN_FLIGHT / channel_limits::CALLS_MAX;
/// A worker says every few seconds that it lives. From one that has sent nothing whole for so long there comes nothing more.
const SILENCE_MAX: Duration = Duration::from_mins(1);
/// A worker that takes no answer for so long has gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// What calls that are under way get to end in when the server stops or the credential counts no more: a poll gives back what
/// it must not hand out.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How often it is looked whether the tenant has switched channels off.
const SWITCH_LOOKED_AT: Duration = Duration::from_secs(2);

/// Make the calls of a worker over a WebSocket
///
/// A text frame `{"id": 7, "call": "/api/v1/agent/poll", "body": {…}}` is what a `POST` to that address would be; its answer
/// comes as `{"id": 7, "status": 200, "body": {…}}`, in any order. It may have the fields `idempotency_key` and `traceparent`,
/// which count as the headers of these names.
#[utoipa::path(
    get,
    path = path::CHANNEL,
    tag = "agent",
    responses((status = 101, description = "The WebSocket is open."), (status = 403), (status = 426), (status = 503)),
)]
pub async fn channel(
    State(state): State<AppState>,
    caller: Caller,
    credential: ShownCredential,
    Extension(calls): Extension<Calls>,
    upgrade: Result<Upgrade, ApiError>,
    parts: http::request::Parts,
) -> Result<Response, ApiError> {
    if !state.tenants().has_channels(caller.tenant).await? {
        let detail = "the tenant's workers make requests: `worker_channel.enabled` is off";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "CHANNEL_DISABLED", detail));
    }
    let seat = state.channels().take(caller.tenant).map_err(|Full { whose, max }| {
        let detail = format!("the workers of {whose} have {max} channels open already; make requests instead");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "LIVE_STREAMS_FULL", detail)
    })?;
    let max = channel_limits::FRAME_BYTES_MAX;
    let upgrade = upgrade?.0.max_message_size(max).max_frame_size(max);
    let proof = (Proof::of(&parts), credential);
    let place = (state, seat, caller.tenant);
    let mut response = upgrade.on_upgrade(move |socket| serve(socket, place, calls, proof)).into_response();
    response.headers_mut().insert(CALL_CONTEXT, HeaderValue::from_static("1"));
    Ok(response)
}

/// What shows whose calls they are: what came with the request for the channel. A browser's cookie is none of it.
#[derive(Clone)]
struct Proof {
    authorization: Option<HeaderValue>,
    worker: Option<PeerWorker>,
    source: Option<PeerAddress>,
}

impl Proof {
    fn of(parts: &http::request::Parts) -> Self {
        Self {
            authorization: parts.headers.get(header::AUTHORIZATION).cloned(),
            worker: parts.extensions.get::<PeerWorker>().cloned(),
            source: parts.extensions.get::<PeerAddress>().copied(),
        }
    }

    fn request(&self, call: CallFrame<'_>) -> Option<Request> {
        let body = call.body.get().to_owned();
        let mut request = Request::post(&*call.call)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONTENT_LENGTH, body.len())
            .body(Body::from(body))
            .ok()?;
        let headers = request.headers_mut();
        for (name, value) in [
            (call::header::IDEMPOTENCY_KEY, &call.idempotency_key),
            (call::header::REQUEST_ID, &call.idempotency_key),
            (call::header::TRACEPARENT, &call.traceparent),
        ] {
            // What cannot be a header is left out, as a request could not have brought it.
            if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        if let Some(worker) = &self.worker {
            request.extensions_mut().insert(worker.clone());
        }
        if let Some(source) = self.source {
            request.extensions_mut().insert(source);
        }
        Some(request)
    }
}

enum Outgoing {
    Answer(Utf8Bytes),
    Close { code: u16, reason: Utf8Bytes },
}

/// Returns once the tenant has switched channels off. A store that cannot be read switches nothing off.
async fn switched_off(state: &AppState, tenant: TenantId) {
    loop {
        tokio::time::sleep(SWITCH_LOOKED_AT).await;
        match state.tenants().has_channels(tenant).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::debug!(%error, "whether a tenant has channels could not be looked at again"),
        }
    }
}

/// Works on calls until the worker goes, its credential counts no more, its tenant has no channels any more, or the server stops.
async fn serve(
    socket: WebSocket,
    (state, _seat, tenant): (AppState, Seat, TenantId),
    calls: Calls,
    (proof, credential): (Proof, ShownCredential),
) {
    let _tracked = state.hub().tasks().token();
    let (sink, mut frames) = socket.split();
    let (outgoing, ready) = mpsc::channel(channel_limits::CALLS_MAX);
    let mut writing = tokio::spawn(write(sink, ready));
    let room = Arc::new(Semaphore::new(BYTES_IN_FLIGHT));
    let mut working = JoinSet::new();
    let taken_back = credential.taken_back(state.identity(), Permission::Work);
    tokio::pin!(taken_back);
    let mut switched_off = Box::pin(switched_off(&state, tenant));
    let (code, reason) = loop {
        let heard = tokio::select! {
            () = state.shutdown().cancelled() => break (close::RESTART, Utf8Bytes::default()),
            () = &mut taken_back => break (close::UNAUTHORIZED, Utf8Bytes::default()),
            () = &mut switched_off => break (close::RESTART, "the tenant's workers make requests".into()),
            _ = &mut writing => return,
            Some(answered) = working.join_next() => match answered {
                Ok(StatusCode::UNAUTHORIZED) => break (close::UNAUTHORIZED, Utf8Bytes::default()),
                _ => continue,
            },
            heard = timeout(SILENCE_MAX, frames.next()) => heard,
        };
        let Ok(heard) = heard else { break (close::ENDED, "nothing was heard for a minute".into()) };
        let text = match heard {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Binary(_))) => break (close::REFUSED, "a frame is text".into()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Ok(Message::Close(_))) | None => break (close::ENDED, Utf8Bytes::default()),
            Some(Err(error)) => {
                break (crate::live::close_code(error).unwrap_or(close::PROTOCOL), Utf8Bytes::default());
            }
        };
        let bytes = text.len().clamp(CALL_BYTES_MIN, BYTES_IN_FLIGHT) as u32;
        // Nothing more is read while there is no room.
        let Ok(held) = Arc::clone(&room).acquire_many_owned(bytes).await else { return };
        let Ok(call) = serde_json::from_str::<CallFrame<'_>>(&text) else {
            break (close::REFUSED, r#"a frame is {"id": 7, "call": "/api/v1/agent/…", "body": {…}}"#.into());
        };
        let id = call.id;
        working.spawn(work(calls.clone(), (id, proof.request(call)), outgoing.clone(), held));
    };
    if matches!(code, close::RESTART | close::UNAUTHORIZED) {
        let ended = async { while working.join_next().await.is_some() {} };
        // Who is not done by then is asked again elsewhere.
        let _ = timeout(LAST_ANSWERS, ended).await;
    }
    working.abort_all();
    // A worker that has gone needs no close frame.
    let _ = outgoing.send(Outgoing::Close { code, reason }).await;
    let _ = timeout(SEND_TIMEOUT, writing).await;
}

async fn work(
    calls: Calls,
    (id, request): (u64, Option<Request>),
    outgoing: mpsc::Sender<Outgoing>,
    _held: OwnedSemaphorePermit,
) -> StatusCode {
    let response = match request {
        Some(request) => calls.answer(request).await,
        None => ApiError::no_such_route().into_response(),
    };
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let body = std::str::from_utf8(&body).ok().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    let answer = AnswerFrame { id, status: status.as_u16(), body };
    if let Ok(frame) = serde_json::to_string(&answer) {
        // The channel is closing: the worker asks again.
        let _ = outgoing.send(Outgoing::Answer(frame.into())).await;
    }
    status
}

/// Writes what is ready with one flush.
async fn write(
    mut sink: impl futures::Sink<Message, Error = axum::Error> + Unpin,
    mut ready: mpsc::Receiver<Outgoing>,
) {
    while let Some(first) = ready.recv().await {
        let mut next = Some(first);
        while let Some(outgoing) = next {
            let (message, last) = match outgoing {
                Outgoing::Answer(text) => (Message::Text(text), false),
                Outgoing::Close { code, reason } => (Message::Close(Some(CloseFrame { code, reason })), true),
            };
            let fed = timeout(SEND_TIMEOUT, sink.feed(message)).await;
            if last {
                // Where the worker has closed first, this frame is not taken, and the answer to its own goes out.
                let _ = timeout(SEND_TIMEOUT, sink.close()).await;
                return;
            }
            if !matches!(fed, Ok(Ok(()))) {
                return;
            }
            next = ready.try_recv().ok();
        }
        if !matches!(timeout(SEND_TIMEOUT, sink.flush()).await, Ok(Ok(()))) {
            return;
        }
    }
}
