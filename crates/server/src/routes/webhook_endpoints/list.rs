//! `GET /webhook-endpoints`: the addresses that are told of events.

use axum::Json;
use axum::extract::State;
use interlock_engine::webhooks::ENDPOINTS_MAX;
use interlock_protocol::webhooks::{OutboundList, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// List the endpoints that are told of events
#[utoipa::path(
    get,
    path = path::OUTBOUND,
    tag = "webhook-endpoints",
    responses((status = 200, description = "All of them.", body = OutboundList)),
)]
pub async fn list(State(state): State<AppState>, caller: Caller) -> Result<Json<OutboundList>, ApiError> {
    let rows = state.for_tenant(caller.tenant).outbound_endpoints(ENDPOINTS_MAX).await?;
    Ok(Json(OutboundList { endpoints: view::endpoints(&state, &caller, rows).await? }))
}
