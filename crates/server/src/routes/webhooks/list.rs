//! `GET /webhooks`: the addresses at which webhooks are taken, by name.

use axum::Json;
use axum::extract::State;
use interlock_engine::webhooks::ENDPOINTS_MAX;
use interlock_protocol::webhooks::{InboundList, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// List the addresses at which webhooks are taken
#[utoipa::path(
    get,
    path = path::INBOUND,
    tag = "webhooks",
    responses((status = 200, description = "All of them.", body = InboundList)),
)]
pub async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<InboundList>, ApiError> {
    let rows = state.for_tenant(caller.tenant).inbound_endpoints("", ENDPOINTS_MAX).await?;
    Ok(Json(InboundList { endpoints: view::endpoints(&state, &caller, rows).await? }))
}
