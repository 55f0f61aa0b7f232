//! `POST /webhook-endpoints/{endpoint}/enable`: messages go on where they stopped.

use axum::Json;
use axum::extract::State;
use interlock_protocol::webhooks::{Enable, OutboundView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfEndpoint};
use crate::state::AppState;

/// Enable an endpoint
///
/// It is told what it missed, unless `skip_missed` says otherwise.
#[utoipa::path(
    post,
    path = path::OUTBOUND_ENABLE,
    tag = "webhook-endpoints",
    params(OfEndpoint),
    request_body = Enable,
    responses((status = 200, description = "The endpoint.", body = OutboundView)),
)]
pub async fn enable(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Body(enable): Body<Enable>,
) -> Result<Json<OutboundView>, ApiError> {
    let by = caller.actor();
    let row = state.webhooks().enable_outbound(caller.tenant, &named, enable.skip_missed, &by).await?;
    Ok(Json(view::endpoint(&state, &caller, row).await?))
}
