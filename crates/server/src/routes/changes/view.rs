//! A change as an answer, and the change that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::time::Timestamp;
use interlock_protocol::changes::ChangeView;
use interlock_store::{ChangeRow, ChangeState};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::state::AppState;

pub fn change(row: ChangeRow, now: Timestamp) -> ChangeView {
    let is_open = matches!(row.state, ChangeState::Requested | ChangeState::Approved);
    let state = if is_open && row.expires_at <= now { "expired" } else { row.state.as_str() };
    ChangeView {
        change: row.id,
        subject: row.subject,
        method: row.method,
        path: row.path,
        body: row.body,
        state: state.to_owned(),
        asked_by: row.asked_by,
        asked_at: row.asked_at,
        expires_at: row.expires_at,
        decided_by: row.decided_by,
        decided_at: row.decided_at,
        notes: row.notes,
        used_at: row.used_at,
    }
}

/// The change that the path names, if it is one of the caller's tenant.
pub struct OfChange(pub ChangeRow);

impl FromRequestParts<AppState> for OfChange {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "change").await?;
        let found = match text.parse() {
            Ok(id) => state.for_tenant(caller.tenant).change(id).await?,
            Err(_) => None,
        };
        found.map(Self).ok_or_else(|| ApiError::unknown("change", &text))
    }
}
