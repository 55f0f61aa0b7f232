//! A worker's calls over one WebSocket ([`interlock_protocol::channel`]). It is opened by the first call that needs it, and
//! again by the next one after it broke.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use interlock_protocol::call::CallContext;
use interlock_protocol::channel::{AnswerFrame, CALL_CONTEXT, CallFrame, limits as channel_limits};
use interlock_protocol::transport::TransportError;
use reqwest::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{RequestBuilder, StatusCode, Upgraded};
use serde_json::value::RawValue;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tracing::info;

use crate::limits;
use crate::outage::lost;

/// The channel of a transport: open, to be opened, or declined for a while.
#[derive(Default)]
pub(crate) struct Channel {
    now: Mutex<ChannelState>,
    /// Held by the caller that opens it; the others wait for the outcome.
    opening: AsyncMutex<()>,
}

#[derive(Default, Clone)]
enum ChannelState {
    #[default]
    Closed,
    Open(Arc<Line>),
    Declined {
        until: Instant,
    },
}

impl ChannelState {
    fn line(self) -> Option<Arc<Line>> {
        if let Self::Open(line) = self { Some(line) } else { None }
    }
}

impl Channel {
    /// The line to make calls over; `None` where they go by requests. `request` asks for the channel.
    pub async fn open(&self, request: impl Fn() -> RequestBuilder) -> Result<Option<Arc<Line>>, TransportError> {
        if let Some(known) = self.known() {
            return Ok(known.line());
        }
        let _opening = self.opening.lock().await;
        if let Some(known) = self.known() {
            return Ok(known.line());
        }
        let opened = timeout(limits::CALL_TIMEOUT, handshake(request())).await;
        let opened = opened.map_err(|_| TransportError::unavailable("the server does not answer"))??;
        let now = match opened {
            Ok(line) => ChannelState::Open(Arc::new(line)),
            Err(status) => {
                info!(%status, "the server declines a channel: calls go by requests");
                ChannelState::Declined { until: Instant::now() + limits::CHANNEL_PAUSE }
            }
        };
        *self.now() = now.clone();
        Ok(now.line())
    }

    /// Calls that are under way end as they began; the next one opens another channel.
    pub fn begin_anew(&self) {
        *self.now() = ChannelState::Closed;
    }

    /// How it stands, where nothing has to be opened first.
    fn known(&self) -> Option<ChannelState> {
        let now = self.now();
        let stands = match &*now {
            ChannelState::Closed => false,
            ChannelState::Open(line) => line.is_open(),
            ChannelState::Declined { until } => Instant::now() < *until,
        };
        stands.then(|| now.clone())
    }

    fn now(&self) -> MutexGuard<'_, ChannelState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type ChannelAnswer = (StatusCode, Vec<u8>);

/// The calls that wait for their answers; none once the connection is over.
type PendingCalls = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<ChannelAnswer>>>>>;

fn waiting(of: &PendingCalls) -> MutexGuard<'_, Option<HashMap<u64, oneshot::Sender<ChannelAnswer>>>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open connection.
pub(crate) struct Line {
    frames: mpsc::Sender<Message>,
    waiting: PendingCalls,
    next: AtomicU64,
    /// The server takes the context of a call with its frame.
    takes_context: bool,
}

impl Line {
    fn new(socket: WebSocketStream<Upgraded>, takes_context: bool) -> Self {
        let (sink, stream) = socket.split();
        let (frames, ready) = mpsc::channel(channel_limits::CALLS_MAX);
        let open: PendingCalls = Arc::new(Mutex::new(Some(HashMap::new())));
        tokio::spawn(write(sink, ready, Arc::clone(&open)));
        tokio::spawn(read(stream, Arc::clone(&open)));
        Self { frames, waiting: open, next: AtomicU64::new(1), takes_context }
    }

    fn is_open(&self) -> bool {
        waiting(&self.waiting).is_some()
    }

    /// Makes a call. One without an answer in time ends the connection: it may be dead.
    pub async fn call(
        &self,
        path: &str,
        body: &str,
        context: &CallContext,
        span: Duration,
    ) -> Result<ChannelAnswer, TransportError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let unreadable = |error: serde_json::Error| TransportError::refused("REQUEST_INVALID", error.to_string());
        let body: &RawValue = serde_json::from_str(body).map_err(unreadable)?;
        let context = self.takes_context.then_some(context);
        let frame = CallFrame {
            id,
            call: Cow::Borrowed(path),
            idempotency_key: context.map(|context| Cow::Borrowed(context.idempotency_key.as_str())),
            traceparent: context.map(|context| Cow::Borrowed(context.traceparent.as_str())),
            body,
        };
        let frame = serde_json::to_string(&frame).map_err(unreadable)?;
        let (answered, answer) = oneshot::channel();
        let broken = || TransportError::unavailable("the channel to the server broke off");
        waiting(&self.waiting).as_mut().ok_or_else(broken)?.insert(id, answered);
        let _forgotten = DroppedCall { waiting: &self.waiting, id };
        let calling = async {
            self.frames.send(Message::text(frame)).await.ok()?;
            answer.await.ok()
        };
        if let Ok(answer) = timeout(span, calling).await {
            return answer.ok_or_else(broken);
        }
        end(&self.waiting);
        Err(TransportError::unavailable("the server does not answer"))
    }
}

/// Removes a call whose caller does not wait any more.
struct DroppedCall<'a> {
    waiting: &'a PendingCalls,
    id: u64,
}

impl Drop for DroppedCall<'_> {
    fn drop(&mut self) {
        if let Some(open) = waiting(self.waiting).as_mut() {
            open.remove(&self.id);
        }
    }
}

/// Tells the waiting callers that there will be no answer.
fn end(of: &PendingCalls) {
    *waiting(of) = None;
}

/// Asks for a channel. `Err` with the status where the server gives none: its reasons come with the first request.
async fn handshake(request: RequestBuilder) -> Result<Result<Line, StatusCode>, TransportError> {
    let key = generate_key();
    let request = request
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key);
    let response = request.send().await.map_err(|error| lost(&error))?;
    let status = response.status();
    let accepted = response.headers().get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
    if status != StatusCode::SWITCHING_PROTOCOLS || accepted != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Ok(Err(status));
    }
    let takes_context = response.headers().contains_key(CALL_CONTEXT);
    let upgraded = response.upgrade().await.map_err(|error| lost(&error))?;
    let most = Some(limits::ANSWER_BYTES_MAX);
    let config = WebSocketConfig::default().max_message_size(most).max_frame_size(most);
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await;
    Ok(Ok(Line::new(socket, takes_context)))
}

/// Writes what is ready with one flush.
async fn write(
    mut sink: SplitSink<WebSocketStream<Upgraded>, Message>,
    mut ready: mpsc::Receiver<Message>,
    waiting: PendingCalls,
) {
    while let Some(first) = ready.recv().await {
        let mut next = Some(first);
        while let Some(frame) = next {
            if sink.feed(frame).await.is_err() {
                return end(&waiting);
            }
            next = ready.try_recv().ok();
        }
        if sink.flush().await.is_err() {
            return end(&waiting);
        }
    }
    // No caller uses this line any more.
    let _ = sink.close().await;
}

async fn read(mut stream: SplitStream<WebSocketStream<Upgraded>>, of: PendingCalls) {
    while let Some(Ok(message)) = stream.next().await {
        let Message::Text(text) = message else { continue };
        let Ok(AnswerFrame { id, status, body }) = serde_json::from_str(&text) else { break };
        let Ok(status) = StatusCode::from_u16(status) else { break };
        let Some(answered) = waiting(&of).as_mut().and_then(|open| open.remove(&id)) else { continue };
        // The caller may have given up at this very moment.
        let _ = answered.send((status, body.map_or_else(Vec::new, |body| body.get().as_bytes().to_vec())));
    }
    end(&of);
}
