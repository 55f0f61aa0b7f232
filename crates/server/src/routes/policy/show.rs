//! `GET /policy`: what actions are held against.

use axum::Json;
use axum::extract::State;
use interlock_protocol::policy::{PolicyView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// What actions are held against
#[utoipa::path(
    get,
    path = path::POLICY,
    tag = "policy",
    responses((status = 200, description = "The policy in force.", body = PolicyView)),
)]
pub async fn show(State(state): State<AppState>, caller: Caller) -> Result<Json<PolicyView>, ApiError> {
    let policy = state.policies().in_force(caller.tenant).await?;
    view::named(&state, &caller, policy).await.map(Json)
}
