//! `GET /runs/{run}/events?last_event_id=`: what has happened after an event. With `wait_ms` an empty answer waits for news.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Millis;
use interlock_protocol::live::Cursor;
use interlock_protocol::runs::{EventList, limits, path};
use interlock_store::EventRecord;
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::live::{Topic, ahead, place_or_since};
use crate::query::Params;
use crate::request::{NamedRun, bounded};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventParams {
    /// The `id` of the last event that you have seen; the header `Last-Event-ID` says the same and comes first.
    last_event_id: Option<String>,
    /// Another name for `last_event_id`.
    since: Option<String>,
    limit: Option<usize>,
    wait_ms: Option<Millis>,
}

/// What has happened after an event
///
/// With `wait_ms` an empty answer waits for news.
#[utoipa::path(
    get,
    path = path::EVENTS,
    tag = "runs",
    params(("run" = RunId, Path), EventParams),
    responses(
        (status = 200, description = "Events in order, without gaps.", body = EventList),
        (status = 409),
    ),
)]
pub async fn events(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    headers: HeaderMap,
    Params(params): Params<EventParams>,
) -> Result<Json<EventList>, ApiError> {
    let place = place_or_since(&headers, params.last_event_id.as_deref(), params.since.as_deref())?;
    let since = place.unwrap_or_default().seq;
    let limit = params.limit.unwrap_or(limits::PAGE_MAX).clamp(1, limits::PAGE_MAX);
    let events = news_of(&state, tenant, run, EventQuery { since, limit, wait: params.wait_ms }).await?;
    let last_event_id = Cursor::after(events.last().map_or(since, |event| event.seq)).to_string();
    let events = state.hub().encoder(Topic::Run(tenant, run)).views_of_run(run, events).await?;
    Ok(Json(EventList { events, last_event_id }))
}

/// Which events of a run, and how long to wait for the first of them.
#[derive(Clone, Copy)]
pub struct EventQuery {
    pub since: u64,
    pub limit: usize,
    pub wait: Option<Millis>,
}

/// What has happened in a run after an event; waits for it where that is wanted.
pub async fn news_of(
    state: &AppState,
    tenant: TenantId,
    run: RunId,
    wanted: EventQuery,
) -> Result<Vec<EventRecord>, ApiError> {
    let read = async || state.for_tenant(tenant).events(run, wanted.since, wanted.limit).await;
    let events = read().await?;
    if !events.is_empty() {
        return Ok(events);
    }
    let overview = state.for_tenant(tenant).run_overview(run).await?;
    let overview = overview.ok_or_else(|| ApiError::unknown_run(run))?;
    if wanted.since > overview.version {
        return Err(ahead());
    }
    let ended = overview.state.is_terminal();
    if wanted.wait.is_none() || ended {
        return Ok(events);
    }
    let mut watcher = state.events().watch_run(tenant, run, wanted.since);
    let news = timeout(bounded(wanted.wait, limits::WAIT_MAX), watcher.next_of_run());
    if let Some(Ok(arrived)) = state.shutdown().run_until_cancelled(news).await {
        arrived?;
    }
    Ok(read().await?)
}
