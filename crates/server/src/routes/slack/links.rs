//! `GET /slack/links`: who is who in Slack.

use axum::Json;
use axum::extract::State;
use interlock_protocol::identity::limits;
use interlock_protocol::slack::{SlackLinkList, path};
use serde::Deserialize;
use utoipa::IntoParams;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SlackLinkListParams {
    limit: Option<usize>,
    /// The person behind whom the page begins.
    after: Option<String>,
}

/// List links between people and Slack users
#[utoipa::path(
    get,
    path = path::LINKS,
    tag = "slack",
    params(SlackLinkListParams),
    responses((status = 200, description = "A page of links, by the people's names.", body = SlackLinkList)),
)]
pub async fn links(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<SlackLinkListParams>,
) -> Result<Json<SlackLinkList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let after = params.after.unwrap_or_default();
    let mut rows = state.for_tenant(caller.tenant).slack_links(&after, limit + 1).await?;
    let next_after = cut(&mut rows, limit, |row| row.person.clone());
    Ok(Json(SlackLinkList { links: rows.into_iter().map(view::link).collect(), next_after }))
}
