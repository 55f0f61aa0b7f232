//! `PATCH /users/{user}`: other roles, other groups; a disabled account can do nothing from now on.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::UserId;
use interlock_engine::EngineError;
use interlock_protocol::identity::{ChangeUser, UserView, path};
use interlock_store::{Changed, UserRow};

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
    for _ in 0..people::CHANGE_TRIES {
        let read = view::reread(&state, &user).await?;
        caller.check_charge_of(read.installation)?;
        let user = changed(&state, &caller, read.clone(), change.clone())?;
        let details = serde_json::json!({
            "name": user.name, "roles": user.roles, "groups": user.groups, "disabled": user.disabled_at.is_some(),
        });
        let what = note::by(&caller, "user.changed", user.id, &details);
        let write = interlock_store::ChangeUser { read, user: user.clone() };
        if state.identity().write_noted(caller.tenant, write, what).await? == Changed::Gone {
            // Another change was faster: this one is judged anew.
            continue;
        }
        if change.disabled == Some(true) {
            state.identity().end_sessions(&user, &caller.actor()).await?;
        }
        return view::named(&state, &caller, user).await.map(Json);
    }
    Err(EngineError::Overloaded.into())
}

/// The account with the change. What is left out stays as it is.
fn changed(state: &AppState, caller: &Caller, mut user: UserRow, change: ChangeUser) -> Result<UserRow, ApiError> {
    if change.roles.is_some() || change.groups.is_some() || change.disabled.is_some() {
        // Also one's own: an admin who makes an approver of themselves is not at once one of two who must agree.
        access::record_by(&mut user, caller, state.now());
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
    Ok(user)
}
