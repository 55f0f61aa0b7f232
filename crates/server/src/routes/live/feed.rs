//! `WS /ws/feed` and `GET /events/stream`: all runs of the tenant as they happen, from now on unless `last_event_id`
//! says otherwise.

use axum::extract::State;
use axum::response::Response;
use interlock_protocol::live::{Cursor, EventView, path};

use super::place::{SocketParams, SocketStart, StartingPoint, StreamParams, Upgrade, Watched, open};
use crate::api_error::ApiError;
use crate::confinement;
use crate::identity::Caller;
use crate::live::{Admission, Credential, Topic, ahead, stream};
use crate::state::AppState;

/// Follow all runs over a WebSocket
#[utoipa::path(
    get,
    path = path::WS_FEED,
    tag = "live",
    params(SocketParams),
    responses((status = 101, description = "The WebSocket is open."), (status = 409), (status = 426)),
)]
pub async fn feed_socket(
    State(state): State<AppState>,
    admission: Admission,
    SocketStart(place): SocketStart,
    upgrade: Upgrade,
) -> Result<Response, ApiError> {
    open(state, upgrade, (admission, place), AllRuns).await
}

/// Follow all runs as server-sent events
///
/// From now on, unless `Last-Event-ID` says otherwise.
#[utoipa::path(
    get,
    path = path::SSE_FEED,
    tag = "live",
    params(StreamParams),
    responses(
        (status = 200, description = "Server-sent events.", body = EventView, content_type = "text/event-stream"),
        (status = 409),
    ),
)]
pub async fn feed_events(
    State(state): State<AppState>,
    caller: Caller,
    StartingPoint(place): StartingPoint,
) -> Result<Response, ApiError> {
    let (topic, cursor) = AllRuns.topic(&state, &caller, place).await?;
    let hub = state.hub().clone();
    let subscription = hub.subscribe(topic, cursor, hub.seat(caller.tenant)?);
    Ok(stream(hub, subscription, Credential::new(state.identity().clone(), caller)))
}

struct AllRuns;

impl Watched for AllRuns {
    async fn topic(&self, state: &AppState, caller: &Caller, place: Option<Cursor>) -> Result<(Topic, u64), ApiError> {
        of_whole_tenant(caller)?;
        let topic = Topic::Tenant(caller.tenant);
        let newest = state.hub().newest(topic).await?;
        let cursor = place.map_or(newest, |place| place.seq);
        if cursor > newest {
            return Err(ahead());
        }
        Ok((topic, cursor))
    }
}

/// The feed is the whole tenant's: a key that is limited to a workspace would see runs that do not exist for it.
pub fn of_whole_tenant(caller: &Caller) -> Result<(), ApiError> {
    caller.workspace.as_deref().map_or(Ok(()), |workspace| Err(confinement::refused(workspace)))
}
