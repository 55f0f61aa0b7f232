//! `GET /events?since=`: what has happened in the tenant after a cursor. With `wait_ms` an empty answer waits for news.

use axum::Json;
use axum::extract::State;
use interlock_core::time::Millis;
use interlock_protocol::live::{FeedPage, path};
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
    let mut page = store.tenant_events(params.since, limit).await?;
    if page.events.is_empty() && params.since > store.last_cursor().await? {
        return Err(ahead());
    }
    if page.events.is_empty() && params.wait_ms.is_some() {
        let mut watcher = state.engine().events().watch_tenant(tenant, page.cursor);
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
    Ok(Json(FeedPage { events: envelopes.into_iter().map(|(_, envelope)| envelope).collect(), next_since }))
}
