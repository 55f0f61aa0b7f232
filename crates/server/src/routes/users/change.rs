//! `PATCH /users/{user}`: other roles, other groups; a disabled account can do nothing from now on.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::UserId;
use interlock_protocol::identity::{ChangeUser, UserView, path};

use super::view::{self, OfUser};
use crate::api_error::ApiError;
use crate::identity::{Caller, access, note, people};
use crate::request::{Body, text};
use crate::state::AppState;

/// Change a person
///
/// Other roles, other groups; a disabled account can do nothing from now on.
#[utoipa::path(
    patch,
    path = path::USER,
    tag = "users",
    params(("user" = UserId, Path)),
    request_body = ChangeUser,
    responses((status = 200, description = "The person.", body = UserView)),
)]
pub async fn change(
    State(state): State<AppState>,
    caller: Caller,
    OfUser(user): OfUser,
    Body(change): Body<ChangeUser>,
) -> Result<Json<UserView>, ApiError> {
    let mut user = view::reread(&state, &user).await?;
    caller.check_charge_of(user.installation)?;
    let ends_sessions = change.disabled == Some(true);
    if change.roles.is_some() || change.groups.is_some() || change.disabled.is_some() {
        // Also one's own: an admin who makes an approver of themselves is not at once one of two who must agree.
        access::record_by(&mut user, &caller, state.now());
    }
    user.roles = change.roles.unwrap_or(user.roles);
    if let Some(groups) = change.groups {
        user.groups = people::groups(groups)?;
    }
    user.display_name = text("display_name", change.display_name)?.or(user.display_name);
    user.email = text("email", change.email)?.or(user.email);
    user.disabled_at = match change.disabled {
        Some(true) => user.disabled_at.or(Some(state.now())),
        Some(false) => None,
        None => user.disabled_at,
    };
    let details = serde_json::json!({
        "name": user.name, "roles": user.roles, "groups": user.groups, "disabled": user.disabled_at.is_some(),
    });
    let what = note::by(&caller, "user.changed", user.id, &details);
    state.identity().write_noted(caller.tenant, interlock_store::ChangeUser(user.clone()), what).await?;
    if ends_sessions {
        state.identity().end_sessions(&user, &caller.actor()).await?;
    }
    view::named(&state, &caller, user).await.map(Json)
}
