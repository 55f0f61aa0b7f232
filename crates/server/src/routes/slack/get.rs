//! `GET /slack`: the tenant's connection.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use interlock_protocol::slack::{SlackView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Look at the connection to Slack
#[utoipa::path(
    get,
    path = path::SLACK,
    tag = "slack",
    responses(
        (status = 200, description = "The connection; its secrets are not shown.", body = SlackView),
        (status = 404, description = "The tenant is not connected to Slack."),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Json<SlackView>, ApiError> {
    let row = state.slack().connection(caller.tenant).await?.ok_or_else(view::not_connected)?;
    view::named(&state, &caller, &headers, row).await.map(Json)
}
