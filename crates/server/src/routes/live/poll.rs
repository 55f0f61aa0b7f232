//! `GET /events?since=`: what has happened in the tenant after a cursor. With `wait_ms` an empty answer waits for news.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use interlock_protocol::live::{EventOrder, FeedPage, path};
use interlock_protocol::runs::limits;
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::feed::of_whole_tenant;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::live::{Topic, ahead};
use crate::query::Params;
use crate::request::bounded;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PollParams {
    /// The cursor of the last event that you have seen.
    #[serde(default)]
    since: u64,
    /// Only what happened since then, in Unix milliseconds.
    from: Option<Timestamp>,
    /// `oldest` first, behind `since`; or the `newest` first.
    #[serde(default)]
    #[param(inline)]
    order: EventOrder,
    /// With `order=newest`: only what came before this cursor.
    before: Option<u64>,
    limit: Option<usize>,
    /// How long an empty answer waits for news.
    wait_ms: Option<Millis>,
}

/// What has happened in all runs
///
/// Events after a cursor, in the tenant's own order. With `wait_ms` an empty answer waits for news.
#[utoipa::path(
    get,
    path = path::FEED,
    tag = "live",
    params(PollParams),
    responses(
        (status = 200, description = "Events in order, without gaps.", body = FeedPage),
        (status = 409),
    ),
)]
pub async fn feed_page(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<PollParams>,
) -> Result<Json<FeedPage>, ApiError> {
    of_whole_tenant(&caller)?;
    let tenant = caller.tenant;
    let limit = params.limit.unwrap_or(limits::PAGE_MAX).clamp(1, limits::PAGE_MAX);
    let store = state.for_tenant(tenant);
    let from = match params.from {
        Some(from) => store.cursor_at(from).await?,
        None => 0,
    };
    let since = params.since.max(from);
    match params.order {
        EventOrder::Newest if params.wait_ms.is_some() => {
            return Err(ApiError::malformed("the query: `wait_ms` waits for what comes next, with `order=oldest`"));
        }
        EventOrder::Newest => return newest(&state, tenant, (since, params.before, limit)).await,
        EventOrder::Oldest if params.before.is_some() => {
            return Err(ApiError::malformed("the query: `before` needs `order=newest`"));
        }
        EventOrder::Oldest => {}
    }
    let mut page = store.tenant_events(since, limit).await?;
    if page.events.is_empty() && params.since > store.last_cursor().await? {
        return Err(ahead());
    }
    if page.events.is_empty() && params.wait_ms.is_some() {
        let mut watcher = state.events().watch_tenant(tenant, page.cursor);
        let news = timeout(bounded(params.wait_ms, limits::WAIT_MAX), watcher.next_of_tenant());
        if let Some(Ok(arrived)) = state.shutdown().run_until_cancelled(news).await {
            page.events = arrived?;
        }
        page.cursor = watcher.cursor();
        if page.events.len() > limit {
            page.events.truncate(limit);
            page.cursor = page.events[limit - 1].cursor;
        }
    }
    let next_since = page.cursor;
    let envelopes = state.hub().encoder(Topic::Tenant(tenant)).envelopes(page.events).await?;
    let events = envelopes.into_iter().map(|(_, envelope)| envelope).collect();
    Ok(Json(FeedPage { events, next_since, next_before: None }))
}

/// The newest events between two cursors, the newest first. Cursors are dense but for what retention has removed.
async fn newest(
    state: &AppState,
    tenant: TenantId,
    (since, before, limit): (u64, Option<u64>, usize),
) -> Result<Json<FeedPage>, ApiError> {
    let store = state.for_tenant(tenant);
    let last = store.last_cursor().await?;
    let end = before.map_or(last, |before| before.saturating_sub(1).min(last));
    let begin = end.saturating_sub(limit as u64).max(since);
    let mut events = if begin < end { store.tenant_events(begin, limit).await?.events } else { Vec::new() };
    events.retain(|event| event.cursor <= end);
    let envelopes = state.hub().encoder(Topic::Tenant(tenant)).envelopes(events).await?;
    let events = envelopes.into_iter().rev().map(|(_, envelope)| envelope).collect();
    Ok(Json(FeedPage { events, next_since: end, next_before: (begin > since).then_some(begin + 1) }))
}
