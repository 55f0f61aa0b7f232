//! `DELETE /delegations/{delegation}`: from now on no person decides by it. Its row stays, for the history.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::DelegationId;
use interlock_protocol::delegations::{DelegationView, path};
use interlock_store::{Changed, RevokeDelegation};

use super::check_owner;
use super::view::{self, OfDelegation};
use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::state::AppState;

/// Revoke a delegation
///
/// From now on no person decides by it; votes that were cast by it stand. Its row stays, for the history.
#[utoipa::path(
    delete,
    path = path::DELEGATION,
    tag = "delegations",
    params(("delegation" = DelegationId, Path)),
    responses((status = 200, description = "The delegation as it is now.", body = DelegationView)),
)]
pub async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    OfDelegation(mut row): OfDelegation,
) -> Result<Json<DelegationView>, ApiError> {
    check_owner(&caller, &row.delegator)?;
    let (at, by) = (state.now(), caller.name());
    let revoke = RevokeDelegation { tenant: row.tenant, delegation: row.id, at, by: by.clone() };
    let details = serde_json::json!({ "delegator": row.delegator, "delegate": row.delegate });
    let what = note::by(&caller, "delegation.revoked", row.id, &details);
    if state.identity().write_noted(caller.tenant, revoke, what).await? == Changed::Done {
        (row.revoked_at, row.revoked_by) = (Some(at), Some(by));
    }
    let mut delegation = view::delegation(row, at);
    view::named(&state, &caller, std::slice::from_mut(&mut delegation)).await?;
    Ok(Json(delegation))
}
