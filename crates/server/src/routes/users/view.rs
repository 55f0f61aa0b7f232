//! A person as an answer, and the person that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_protocol::identity::UserView;
use interlock_store::UserRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
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
