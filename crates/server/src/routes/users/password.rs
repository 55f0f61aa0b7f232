//! `POST /users/{user}/password`: a new password. An admin sets any person's; one's own needs the old one. Visits that
//! were begun with the old one end.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::ids::UserId;
use interlock_core::tenant::identity::Permission;
use interlock_engine::EngineError;
use interlock_protocol::identity::{SetPassword, path};
use interlock_store::{ChangeUser, Changed, UserRow};

use super::view::{self, OfUser};
use crate::api_error::ApiError;
use crate::connections::PeerAddress;
use crate::identity::{Caller, Via, note, people};
use crate::request::Body;
use crate::state::AppState;

/// Set a password
///
/// An admin sets any person's; one's own needs the old one. Visits begun with the old one end.
#[utoipa::path(
    post,
    path = path::USER_PASSWORD,
    tag = "users",
    params(("user" = UserId, Path)),
    request_body = SetPassword,
    responses((status = 204, description = "Done.")),
)]
pub async fn set(
    State(state): State<AppState>,
    caller: Caller,
    PeerAddress(source): PeerAddress,
    OfUser(user): OfUser,
    Body(body): Body<SetPassword>,
) -> Result<StatusCode, ApiError> {
    let user = view::reread(&state, &user).await?;
    let own = matches!(caller.via, Via::Session { user: own, .. } if own == user.id);
    if own {
        let old = body.old_password.unwrap_or_default();
        let kept = user.password.clone();
        if !state.identity().check_password(user.tenant, &user.name, kept, old, source).await? {
            return Err(ApiError::invalid("`old_password` is not your password"));
        }
    } else if !caller.may(Permission::Administer) {
        return Err(ApiError::unknown("user", &user.id.to_string()));
    }
    caller.check_charge_of(user.installation && !own)?;
    let (shown, password) = (user.password.clone(), state.identity().passwords().hash(body.password).await?);
    for _ in 0..people::CHANGE_TRIES {
        let read = view::reread(&state, &user).await?;
        if own && read.password != shown {
            return Err(ApiError::invalid("your password was changed meanwhile; sign in again"));
        }
        caller.check_charge_of(read.installation && !own)?;
        let mut user = UserRow { password: Some(password.clone()), ..read.clone() };
        people::note_access(&mut user, &caller, state.now());
        let details = serde_json::json!({ "name": user.name, "own": own });
        let what = note::by(&caller, "user.password_set", user.id, &details);
        let write = ChangeUser { read, user: user.clone() };
        if state.identity().write_noted(caller.tenant, write, what).await? == Changed::Done {
            state.identity().end_sessions(&user, &caller.actor()).await?;
            return Ok(StatusCode::NO_CONTENT);
        }
    }
    Err(EngineError::Overloaded.into())
}
