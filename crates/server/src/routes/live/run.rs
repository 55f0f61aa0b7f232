//! `WS /ws/runs/{run}` (also `/ws/executions/{run}`) and `GET /runs/{run}/events/stream`: one run as it happens, from
//! its first event on unless `last_event_id` says otherwise.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use interlock_core::ids::RunId;
use interlock_protocol::live::{Cursor, EventView, path};

use super::place::{SocketParams, SocketStart, StartingPoint, StreamParams, Upgrade, Watched, open};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::live::{Admission, Credential, Topic, ahead, stream};
use crate::request::{NamedRun, run_of_path};
use crate::state::AppState;

/// Follow a run over a WebSocket
///
/// Every message is an event, or says how the stream stands. See `docs/reference/live.md`.
#[utoipa::path(
    get,
    path = path::WS_RUN,
    tag = "live",
    params(("run" = RunId, Path), SocketParams),
    responses((status = 101, description = "The WebSocket is open."), (status = 409), (status = 426)),
)]
pub async fn run_socket(
    State(state): State<AppState>,
    admission: Admission,
    SocketStart(place): SocketStart,
    upgrade: Upgrade,
    mut parts: Parts,
) -> Result<Response, ApiError> {
    let run = run_of_path(&mut parts, &state).await?;
    open(state, upgrade, (admission, place), OneRun { run, enveloped: false }).await
}

/// Follow an execution over a WebSocket
///
/// Every message is an envelope of the runbook surface, or says how the stream stands.
#[utoipa::path(
    get,
    path = path::WS_EXECUTION,
    tag = "live",
    params(("run" = RunId, Path), SocketParams),
    responses((status = 101, description = "The WebSocket is open."), (status = 409), (status = 426)),
)]
pub async fn execution_socket(
    State(state): State<AppState>,
    admission: Admission,
    SocketStart(place): SocketStart,
    upgrade: Upgrade,
    mut parts: Parts,
) -> Result<Response, ApiError> {
    let run = run_of_path(&mut parts, &state).await?;
    open(state, upgrade, (admission, place), OneRun { run, enveloped: true }).await
}

/// Follow a run as server-sent events
///
/// From its first event on, unless `Last-Event-ID` says otherwise. Ends when the run has ended; 204 where nothing more
/// will come.
#[utoipa::path(
    get,
    path = path::SSE_RUN,
    tag = "live",
    params(("run" = RunId, Path), StreamParams),
    responses(
        (status = 200, description = "Server-sent events.", body = EventView, content_type = "text/event-stream"),
        (status = 204, description = "The run has ended, and you have seen all of it."),
        (status = 409),
    ),
)]
pub async fn run_events(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    StartingPoint(place): StartingPoint,
) -> Result<Response, ApiError> {
    let overview = state.for_tenant(tenant).run_overview(run).await?;
    let overview = overview.ok_or_else(|| ApiError::unknown_run(run))?;
    // A browser reconnects whenever a stream closes; this answer tells it that there is nothing more to come.
    if overview.state.is_terminal() && place.is_some_and(|place| place.seq == overview.version) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (topic, cursor) = OneRun { run, enveloped: false }.topic(&state, &caller, place).await?;
    let hub = state.hub().clone();
    let subscription = hub.subscribe(topic, cursor, hub.seat(caller.tenant)?);
    Ok(stream(hub, subscription, Credential::new(state.identity().clone(), caller)))
}

struct OneRun {
    run: RunId,
    /// As the runbook surface tells it.
    enveloped: bool,
}

impl Watched for OneRun {
    async fn topic(&self, state: &AppState, caller: &Caller, place: Option<Cursor>) -> Result<(Topic, u64), ApiError> {
        caller.reach(state, self.run).await?;
        let of = if self.enveloped { Topic::Execution } else { Topic::Run };
        let topic = of(caller.tenant, self.run);
        let newest = state.hub().newest(topic).await?;
        let cursor = place.map_or(0, |place| place.seq);
        if cursor > newest {
            return Err(ahead());
        }
        Ok((topic, cursor))
    }
}
