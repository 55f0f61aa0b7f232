//! `DELETE /slack/links/{person}`: the person decides nothing in Slack any more.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use interlock_core::tenant::identity::Permission;
use interlock_protocol::slack::path;
use interlock_store::{Changed, UnlinkSlackUser};
use serde_json::json;

use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::state::AppState;

/// Unlink a person from Slack
///
/// People unlink themselves; an admin unlinks any person. Linking is done from Slack, by the person alone.
#[utoipa::path(
    delete,
    path = path::LINK,
    tag = "slack",
    params(("person" = String, Path)),
    responses((status = 204, description = "The link is gone.")),
)]
pub async fn unlink(
    State(state): State<AppState>,
    caller: Caller,
    Path(person): Path<String>,
) -> Result<StatusCode, ApiError> {
    let unknown = || ApiError::unknown("Slack link", &person);
    // Only the person and admins may know of a link: to all others it does not exist.
    if caller.person.as_deref() != Some(person.as_str()) && !caller.may(Permission::Administer) {
        return Err(unknown());
    }
    let link = state.for_tenant(caller.tenant).slack_link_of(&person).await?.ok_or_else(unknown)?;
    let details = json!({ "team": link.who.team, "user": link.who.user });
    let what = note::by(&caller, "slack.unlinked", &person, &details);
    let unlink = UnlinkSlackUser { tenant: caller.tenant, person: person.clone() };
    match state.identity().write_noted(caller.tenant, unlink, what).await? {
        Changed::Done => Ok(StatusCode::NO_CONTENT),
        Changed::Gone => Err(unknown()),
    }
}
