//! A delegation as an answer, and the delegation that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::time::Timestamp;
use interlock_protocol::delegations::DelegationView;
use interlock_store::DelegationRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::request::named_in_path;
use crate::state::AppState;

pub fn delegation(row: DelegationRow, now: Timestamp) -> DelegationView {
    DelegationView {
        delegation: row.id,
        in_force: row.revoked_at.is_none() && row.from_at <= now && now < row.until_at,
        delegator: row.delegator,
        delegate: row.delegate,
        from: row.from_at,
        until: row.until_at,
        reason: row.reason,
        created_at: row.created_at,
        created_by: row.created_by,
        revoked_at: row.revoked_at,
        revoked_by: row.revoked_by,
    }
}

/// Delegations for a caller, with the names of the keys that made and revoked them.
pub async fn named(state: &AppState, caller: &Caller, delegations: &mut [DelegationView]) -> Result<(), ApiError> {
    let names = delegations.iter_mut().flat_map(|row| std::iter::once(&mut row.created_by).chain(&mut row.revoked_by));
    name_keys(state, caller, names.collect()).await
}

/// The delegation that the path names, if it is one of the caller's tenant.
pub struct OfDelegation(pub DelegationRow);

impl FromRequestParts<AppState> for OfDelegation {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "delegation").await?;
        let found = match text.parse() {
            Ok(id) => state.for_tenant(caller.tenant).delegation(id).await?,
            Err(_) => None,
        };
        found.map(Self).ok_or_else(|| ApiError::unknown("delegation", &text))
    }
}
