//! `GET /webhook-endpoints/{endpoint}`: one endpoint.

use axum::Json;
use axum::extract::State;
use interlock_protocol::webhooks::{OutboundView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfEndpoint;
use crate::state::AppState;

/// Look at an endpoint that is told of events
#[utoipa::path(
    get,
    path = path::OUTBOUND_ONE,
    tag = "webhook-endpoints",
    params(OfEndpoint),
    responses((status = 200, description = "The endpoint.", body = OutboundView)),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
) -> Result<Json<OutboundView>, ApiError> {
    let row = state.webhooks().outbound_endpoint(caller.tenant, &named).await?;
    Ok(Json(view::endpoint(&state, &caller, row).await?))
}
