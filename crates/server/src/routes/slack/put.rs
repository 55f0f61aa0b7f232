//! `PUT /slack`: connects the tenant to Slack, or changes how.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use interlock_core::time::Millis;
use interlock_engine::slack::settings::SlackSettings;
use interlock_protocol::slack::{PutSlackConnection, SlackView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Connect to Slack
///
/// From now on people are asked for approvals in this channel. What is left out of secrets and spans stays as it is; all
/// else is as the request says.
#[utoipa::path(
    put,
    path = path::SLACK,
    tag = "slack",
    request_body = PutSlackConnection,
    responses((status = 200, description = "The connection as it is now.", body = SlackView)),
)]
pub async fn put(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<PutSlackConnection>,
) -> Result<Json<SlackView>, ApiError> {
    // Who has given the secret with which Slack signs could press for others, and is kept by one name.
    caller.check_one_hand()?;
    let span = |seconds: u64| Millis(seconds.saturating_mul(1_000));
    let settings = SlackSettings {
        team: body.team,
        enterprise: body.enterprise,
        channel: body.channel,
        escalation_channel: body.escalation_channel,
        bot_token: body.bot_token,
        signing_secret: body.signing_secret,
        pagerduty_key: body.pagerduty_routing_key,
        rung_prod: body.rung_prod_s.map(span),
        rung_other: body.rung_other_s.map(span),
    };
    let row = state.slack().connect(caller.tenant, settings, &caller.actor()).await?;
    view::named(&state, &caller, &headers, row).await.map(Json)
}
