//! `GET /delegations/{delegation}`: one delegation, whether it holds or is over.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::DelegationId;
use interlock_protocol::delegations::{DelegationView, path};

use super::view::{self, OfDelegation};
use crate::state::AppState;

/// Look at a delegation
#[utoipa::path(
    get,
    path = path::DELEGATION,
    tag = "delegations",
    params(("delegation" = DelegationId, Path)),
    responses((status = 200, description = "The delegation.", body = DelegationView)),
)]
pub async fn get(State(state): State<AppState>, OfDelegation(row): OfDelegation) -> Json<DelegationView> {
    Json(view::delegation(row, state.now()))
}
