//! `GET /executions/{session_id}/events?since=`: the live stream for who cannot keep a WebSocket open. With `wait_ms` an
//! empty answer waits for news.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::time::Millis;
use interlock_protocol::executions::{ExecutionEvents, path};
use interlock_protocol::live::Cursor;
use interlock_protocol::runs::limits;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::live::{Topic, enveloped};
use crate::query::{Params, parsed};
use crate::request::NamedRun;
use crate::routes::runs::events::{EventQuery, news_of};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExecutionEventParams {
    /// The `id` of the last event that you have seen.
    since: Option<String>,
    #[param(maximum = 500)]
    limit: Option<usize>,
    /// How long an empty answer waits for news.
    wait_ms: Option<Millis>,
}

/// What has happened after an event
///
/// The envelopes of the stream. With `wait_ms` an empty answer waits for news.
#[utoipa::path(
    get,
    path = path::EVENTS,
    tag = "executions",
    params(("session_id" = RunId, Path), ExecutionEventParams),
    responses(
        (status = 200, description = "Events in order, without gaps.", body = ExecutionEvents),
        (status = 409),
    ),
)]
pub async fn events(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    Params(params): Params<ExecutionEventParams>,
) -> Result<Json<ExecutionEvents>, ApiError> {
    let since = params.since.as_deref().filter(|text| !text.is_empty());
    let since: Cursor = since.map(|text| parsed("since", text)).transpose()?.unwrap_or_default();
    let since = since.seq;
    let limit = params.limit.unwrap_or(limits::PAGE_MAX).clamp(1, limits::PAGE_MAX);
    let events = news_of(&state, tenant, run, EventQuery { since, limit, wait: params.wait_ms }).await?;
    let next_since = Cursor::after(events.last().map_or(since, |event| event.seq)).to_string();
    let told = state.hub().encoder(Topic::Execution(tenant, run)).views_of_run(run, events).await?;
    Ok(Json(ExecutionEvents { events: told.into_iter().map(enveloped).collect(), next_since }))
}
