//! `POST /slack/interactions/{connection}`: takes a press in Slack. The signature is checked over the raw bytes
//! before anything is read, and Slack is answered at once: it gives up after three seconds. The work goes on behind that.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use interlock_core::ids::SlackId;
use interlock_core::trigger::webhook::slack_interaction::COMMENT_BLOCK;
use interlock_engine::slack::take::{Interaction, SlackRequest};
use interlock_engine::webhooks::receive::ReceiveError;
use interlock_protocol::slack::path;
use serde_json::json;

use super::vote;
use crate::api_error::ApiError;
use crate::request::RawBody;
use crate::routes::webhooks::receive::{by_name, refused};
use crate::state::AppState;

/// Take a press on a button in Slack
///
/// Slack's interactivity payload, signed by Slack. A press becomes a vote by the same rules as every other.
#[utoipa::path(
    post,
    path = path::INTERACTIONS,
    tag = "slack",
    params(("connection" = SlackId, Path)),
    request_body(content = String, description = "A form with the field `payload`.", content_type = "application/x-www-form-urlencoded"),
    responses(
        (status = 200, description = "Taken. What becomes of it is shown in Slack."),
        (status = 401, description = "The signature is missing, wrong or old."),
        (status = 503, description = "Too much is being worked on; press again."),
    ),
)]
pub async fn interactions(
    State(state): State<AppState>,
    Path(connection): Path<String>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Response, ApiError> {
    let connection: SlackId = connection.parse().map_err(|_| refused(ReceiveError::Unknown))?;
    let request = SlackRequest { connection, headers: by_name(&headers), body: body.to_vec() };
    let (slack, interaction) = state.slack().take(&request).await.map_err(refused)?;
    if let Interaction::Rejected { comment, .. } = &interaction
        && comment.trim().is_empty()
    {
        let errors = json!({ COMMENT_BLOCK: "A rejection needs a comment." });
        return Ok(Json(json!({ "response_action": "errors", "errors": errors })).into_response());
    }
    if interaction == Interaction::Other {
        return Ok(StatusCode::OK.into_response());
    }
    let Some(place) = state.slack_place() else {
        let detail = "too many presses are being worked on; press again in a moment";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "OVERLOADED", detail));
    };
    tokio::spawn(async move {
        vote::take(&state, &slack, interaction).await;
        drop(place);
    });
    Ok(StatusCode::OK.into_response())
}
