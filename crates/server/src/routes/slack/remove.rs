//! `DELETE /slack`: approvals are not asked for in Slack any more.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::slack::path;

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Disconnect from Slack
///
/// Links of people and messages that are still on their way end with it. Cards that were posted stay as they are.
#[utoipa::path(
    delete,
    path = path::SLACK,
    tag = "slack",
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "The tenant is not connected to Slack."),
    ),
)]
pub async fn remove(State(state): State<AppState>, caller: Caller) -> Result<StatusCode, ApiError> {
    if state.slack().disconnect(caller.tenant, &caller.actor()).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(view::not_connected())
    }
}
