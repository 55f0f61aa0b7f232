//! `POST /webhook-endpoints/{endpoint}/disable`: messages wait until it is enabled again.

use axum::Json;
use axum::extract::State;
use interlock_protocol::webhooks::{Disable, OutboundView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfEndpoint, reason};
use crate::state::AppState;

/// Disable an endpoint
#[utoipa::path(
    post,
    path = path::OUTBOUND_DISABLE,
    tag = "webhook-endpoints",
    params(OfEndpoint),
    request_body = Disable,
    responses((status = 200, description = "The endpoint.", body = OutboundView)),
)]
pub async fn disable(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Body(disable): Body<Disable>,
) -> Result<Json<OutboundView>, ApiError> {
    let why = disable.reason.map(reason).transpose()?;
    let row = state.webhooks().disable_outbound(caller.tenant, &named, why, &caller.actor()).await?;
    Ok(Json(view::endpoint(&state, &caller, row).await?))
}
