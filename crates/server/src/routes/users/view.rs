//! A person as an answer, and the person that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_protocol::identity::UserView;
use interlock_store::UserRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::request::named_in_path;
use crate::state::AppState;

pub fn user(row: UserRow) -> UserView {
    UserView {
        user: row.id,
        name: row.name,
        display_name: row.display_name,
        email: row.email,
        roles: row.roles,
        groups: row.groups,
        installation: row.installation,
        has_password: row.password.is_some(),
        issuer: row.issuer,
        created_at: row.created_at,
        created_by: row.created_by,
        disabled_at: row.disabled_at,
        last_login_at: row.last_login_at,
    }
}

/// People for a caller, with the names of the keys that made their accounts.
pub async fn users(state: &AppState, caller: &Caller, rows: Vec<UserRow>) -> Result<Vec<UserView>, ApiError> {
    let mut users: Vec<UserView> = rows.into_iter().map(user).collect();
    name_keys(state, caller, users.iter_mut().filter_map(|user| user.created_by.as_mut()).collect()).await?;
    Ok(users)
}

/// One person for a caller.
pub async fn named(state: &AppState, caller: &Caller, row: UserRow) -> Result<UserView, ApiError> {
    let mut user = user(row);
    name_keys(state, caller, user.created_by.iter_mut().collect()).await?;
    Ok(user)
}

/// The account as it is now. Since the path was read others may have changed it, for as long as its sender was slow with the
/// body or a password was hashed, and an account is written whole: what they changed would be undone.
pub async fn reread(state: &AppState, user: &UserRow) -> Result<UserRow, ApiError> {
    let found = state.for_tenant(user.tenant).user(user.id).await?;
    found.ok_or_else(|| ApiError::unknown("user", &user.id.to_string()))
}

/// The person that the path names, if it is one of the caller's tenant.
pub struct OfUser(pub UserRow);

impl FromRequestParts<AppState> for OfUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "user").await?;
        let found = match text.parse() {
            Ok(id) => state.for_tenant(caller.tenant).user(id).await?,
            Err(_) => None,
        };
        found.map(Self).ok_or_else(|| ApiError::unknown("user", &text))
    }
}
