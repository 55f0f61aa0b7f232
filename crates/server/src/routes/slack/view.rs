//! A connection and a link as answers.

use axum::http::{HeaderMap, StatusCode};
use interlock_protocol::slack::{SlackLinkView, SlackView, path};
use interlock_store::{SlackLinkRow, SlackRow};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::state::AppState;

/// The connection for a caller, with the names of the keys that made it.
pub async fn named(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    row: SlackRow,
) -> Result<SlackView, ApiError> {
    let mut shown = connection(state, headers, row);
    let names = shown.created_by.iter_mut().chain(shown.secrets_given_by.iter_mut()).collect();
    name_keys(state, caller, names).await?;
    Ok(shown)
}

fn connection(state: &AppState, headers: &HeaderMap, row: SlackRow) -> SlackView {
    let address = path::INTERACTIONS.replace("{connection}", &row.id.to_string());
    SlackView {
        connection: row.id,
        interactions_url: format!("{}{address}", state.base_url(headers)),
        team: row.team,
        enterprise: row.enterprise,
        channel: row.channel,
        escalation_channel: row.escalation_channel,
        pagerduty: row.pagerduty_key.is_some(),
        rung_prod_s: row.rung_prod.0 / 1_000,
        rung_other_s: row.rung_other.0 / 1_000,
        created_at: row.created_at,
        created_by: row.created_by,
        secrets_given_at: row.secret_at,
        secrets_given_by: row.secret_by,
    }
}

pub fn link(row: SlackLinkRow) -> SlackLinkView {
    SlackLinkView {
        person: row.person,
        enterprise: Some(row.who.enterprise).filter(|enterprise| !enterprise.is_empty()),
        team: row.who.team,
        user: row.who.user,
        linked_at: row.linked_at,
        linked_by: row.linked_by,
    }
}

pub fn not_connected() -> ApiError {
    let detail = "this tenant is not connected to Slack (`PUT /slack`, `interlock slack connect`)";
    ApiError::new(StatusCode::NOT_FOUND, "SLACK_NOT_CONNECTED", detail)
}
