//! From which event on: `Last-Event-ID` (as browsers send it on their own), the header
//! `last_event_id`, or the query.

use axum::extract::FromRequestParts;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use interlock_protocol::live::{Control, Cursor, close, limits};
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::live::{self, Admission, Credential, Socket, Topic, WatcherMessage, cursor, serve, verify_token};
use crate::query::Params;
use crate::state::AppState;

/// What the query of server-sent events may hold. They are opened by a request's headers, as any other route.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamParams {
    /// The `id` of the last event that you have seen; the header `Last-Event-ID` says the same and comes first.
    last_event_id: Option<String>,
}

/// What a WebSocket's query may hold.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SocketParams {
    /// The `id` of the last event that you have seen; the header `Last-Event-ID` says the same and comes first.
    last_event_id: Option<String>,
    /// A short-lived token, where no header can carry one. It is read where it is judged.
    #[serde(rename = "token")]
    _token: Option<String>,
}

/// Where a request wants to go on; the stream's own beginning if it does not say.
pub struct StartingPoint(pub Option<Cursor>);

impl FromRequestParts<AppState> for StartingPoint {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Params(params) = Params::<StreamParams>::from_request_parts(parts, state).await?;
        live::place(&parts.headers, params.last_event_id.as_deref()).map(Self)
    }
}

/// The same for a WebSocket.
pub struct SocketStart(pub Option<Cursor>);

impl FromRequestParts<AppState> for SocketStart {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let Params(params) = Params::<SocketParams>::from_request_parts(parts, state).await?;
        live::place(&parts.headers, params.last_event_id.as_deref()).map(Self)
    }
}

/// A request for a WebSocket. Any other request is told so in our own words.
pub struct Upgrade(pub WebSocketUpgrade);

impl FromRequestParts<AppState> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        WebSocketUpgrade::from_request_parts(parts, state).await.map(Self).map_err(|rejection| {
            let detail = format!("this address is a WebSocket's: {}", rejection.body_text());
            ApiError::new(StatusCode::UPGRADE_REQUIRED, "UPGRADE_REQUIRED", detail)
        })
    }
}

/// What a stream is about: finds the topic among what the caller may see, and where it starts.
pub trait Watched: Send + Sync + 'static {
    fn topic(
        &self,
        state: &AppState,
        caller: &Caller,
        place: Option<Cursor>,
    ) -> impl Future<Output = Result<(Topic, u64), ApiError>> + Send;
}

/// Opens the WebSocket: at once where the request says everything, else after the first frame has.
pub async fn open(
    state: AppState,
    Upgrade(upgrade): Upgrade,
    (admission, place): (Admission, Option<Cursor>),
    watched: impl Watched,
) -> Result<Response, ApiError> {
    let upgrade = upgrade
        .max_message_size(limits::FRAME_BYTES_MAX)
        .max_frame_size(limits::FRAME_BYTES_MAX)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(WRITE_BUFFER_MAX);
    if let Admission::Granted(caller) = admission {
        let (topic, cursor) = watched.topic(&state, &caller, place).await?;
        let hub = state.hub().clone();
        let seat = hub.seat(caller.tenant)?;
        let credential = Credential::new(state.identity().clone(), *caller);
        return Ok(upgrade.on_upgrade(move |socket| {
            let subscription = hub.subscribe(topic, cursor, seat);
            serve(Socket::new(socket), hub, topic, subscription, credential)
        }));
    }
    let unknown = state.hub().unknown_socket()?;
    Ok(upgrade.on_upgrade(async move |socket| {
        let mut socket = Socket::new(socket);
        let introduced = first_frame(&state, &mut socket, place, &watched).await;
        drop(unknown);
        let hub = state.hub().clone();
        let seated = introduced.and_then(|introduced| {
            let Some((topic, cursor, caller)) = introduced else { return Ok(None) };
            hub.seat(topic.tenant()).map(|seat| Some((topic, cursor, caller, seat)))
        });
        match seated {
            Ok(Some((topic, cursor, caller, seat))) => {
                let subscription = hub.subscribe(topic, cursor, seat);
                let credential = Credential::new(state.identity().clone(), caller);
                serve(socket, hub, topic, subscription, credential).await;
            }
            Ok(None) => {}
            Err(error) => {
                let refused = Control::Refused { code: error.code().to_owned(), detail: error.detail().to_owned() };
                socket.close(&refused, close::REFUSED).await;
            }
        }
    }))
}

/// Small buffers: there may be thousands of these sockets, and a frame is a few hundred bytes.
const READ_BUFFER: usize = 4 << 10;
const WRITE_BUFFER: usize = 16 << 10;
const WRITE_BUFFER_MAX: usize = 4 << 20;

/// The token and the place, from the first frame. None where the watcher left without one.
async fn first_frame(
    state: &AppState,
    socket: &mut Socket,
    place: Option<Cursor>,
    watched: &impl Watched,
) -> Result<Option<(Topic, u64, Caller)>, ApiError> {
    let heard = tokio::select! {
        () = state.hub().shutdown().cancelled() => return Ok(None),
        heard = timeout(limits::FIRST_FRAME_WAIT.as_duration(), socket.hear()) => heard,
    };
    let (last_event_id, token) = match heard {
        Ok(Ok(WatcherMessage::Subscribe { last_event_id, token: Some(token) })) => (last_event_id, token),
        Ok(Ok(WatcherMessage::Subscribe { .. })) | Err(_) => return Err(ApiError::unauthorized()),
        Ok(Ok(WatcherMessage::NotUnderstood(what))) => {
            return Err(ApiError::malformed(format!("the first frame: {what}")));
        }
        Ok(Err(_)) => return Ok(None),
    };
    let caller = verify_token(state, &token).await?;
    let place = last_event_id.as_deref().map(cursor).transpose()?.or(place);
    let (topic, cursor) = watched.topic(state, &caller, place).await?;
    Ok(Some((topic, cursor, caller)))
}
