//! `GET /runs/{run}/events?since=`: what has happened after an event. With `wait_ms` an empty answer waits for news.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::time::Millis;
use interlock_protocol::runs::{EventList, limits, path};
use interlock_store::EventRecord;
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::request::{Named, Params, bounded};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventParams {
    #[serde(default)]
    since: u64,
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
    responses((status = 200, description = "Events in order, without gaps.", body = EventList)),
)]
pub async fn events(
    State(state): State<AppState>,
    Named { tenant, run }: Named,
    Params(params): Params<EventParams>,
) -> Result<Json<EventList>, ApiError> {
    let mut events = read(&state, tenant, run, &params).await?;
    if events.is_empty() {
        let overview = state.reads(tenant).run_overview(tenant, run).await?;
        let ended = overview.ok_or_else(|| ApiError::unknown_run(run))?.state.is_terminal();
        if params.wait_ms.is_some() && !ended {
            wait_for_news(&state, tenant, run, &params).await?;
            events = read(&state, tenant, run, &params).await?;
        }
    }
    let next_since = events.last().map_or(params.since, |event| event.seq);
    Ok(Json(EventList { events: events.into_iter().map(view::event).collect(), next_since }))
}

async fn read(
    state: &AppState,
    tenant: TenantId,
    run: RunId,
    params: &EventParams,
) -> Result<Vec<EventRecord>, ApiError> {
    let limit = params.limit.unwrap_or(limits::PAGE_MAX).clamp(1, limits::PAGE_MAX);
    Ok(state.reads(tenant).events(tenant, run, params.since, limit).await?)
}

async fn wait_for_news(state: &AppState, tenant: TenantId, run: RunId, params: &EventParams) -> Result<(), ApiError> {
    let mut watcher = state.engine().watch_run(tenant, run, params.since);
    let news = timeout(bounded(params.wait_ms, limits::WAIT_MAX), watcher.next_of_run());
    if let Some(Ok(arrived)) = state.shutdown().run_until_cancelled(news).await {
        arrived?;
    }
    Ok(())
}
