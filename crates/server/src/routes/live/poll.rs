//! `GET /events?last_event_id=`: what has happened in the tenant after a cursor. With `wait_ms` an empty answer waits for news.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use interlock_protocol::live::{Cursor, EventOrder, FeedPage, path};
use interlock_protocol::runs::limits;
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::IntoParams;

use super::feed::of_whole_tenant;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::live::{Topic, ahead, cursor, place_or_since};
use crate::query::Params;
use crate::request::bounded;
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PollParams {
    /// The `id` of the last event that you have seen; the header `Last-Event-ID` says the same and comes first.
    last_event_id: Option<String>,
    /// Another name for `last_event_id`.
    since: Option<String>,
    /// Only what happened since then, in Unix milliseconds.
    from: Option<Timestamp>,
    /// `oldest` first, behind `last_event_id`; or the `newest` first.
    #[serde(default)]
    #[param(inline)]
    order: EventOrder,
    /// With `order=newest`: only what came before the event of this `id`.
    before: Option<String>,
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
    headers: HeaderMap,
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
    let place = place_or_since(&headers, params.last_event_id.as_deref(), params.since.as_deref())?;
    let seen = place.unwrap_or_default().seq;
    let before = params.before.as_deref().map(cursor).transpose()?.map(|place| place.seq);
    let since = seen.max(from);
    match params.order {
        EventOrder::Newest if params.wait_ms.is_some() => {
            return Err(ApiError::malformed("the query: `wait_ms` waits for what comes next, with `order=oldest`"));
        }
        EventOrder::Newest => return newest(&state, tenant, (since, before, limit)).await,
        EventOrder::Oldest if before.is_some() => {
            return Err(ApiError::malformed("the query: `before` needs `order=newest`"));
        }
        EventOrder::Oldest => {}
    }
    let mut page = store.tenant_events(since, limit).await?;
    if page.events.is_empty() && seen > store.last_cursor().await? {
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
    let last_event_id = Cursor::after(page.cursor).to_string();
    let events = state.hub().encoder(Topic::Tenant(tenant)).views(page.events).await?;
    Ok(Json(FeedPage { events, last_event_id, next_before: None }))
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
    let mut events = state.hub().encoder(Topic::Tenant(tenant)).views(events).await?;
    events.reverse();
    let next_before = (begin > since).then(|| Cursor::after(begin + 1).to_string());
    Ok(Json(FeedPage { events, last_event_id: Cursor::after(end).to_string(), next_before }))
}
