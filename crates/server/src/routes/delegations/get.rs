//! `GET /delegations/{delegation}`: one delegation, whether it holds or is over.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::DelegationId;
use interlock_protocol::delegations::{DelegationView, path};

use super::view::{self, OfDelegation};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Look at a delegation
#[utoipa::path(
    get,
    path = path::DELEGATION,
    tag = "delegations",
    params(("delegation" = DelegationId, Path)),
    responses((status = 200, description = "The delegation.", body = DelegationView)),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfDelegation(row): OfDelegation,
) -> Result<Json<DelegationView>, ApiError> {
    let mut delegation = view::delegation(row, state.now());
    view::named(&state, &caller, std::slice::from_mut(&mut delegation)).await?;
    Ok(Json(delegation))
}
