//! `PATCH /webhooks/{endpoint}`: pauses an address, or changes how it drops repeats.

use axum::Json;
use axum::extract::State;
use interlock_engine::webhooks::inbound::InboundChange;
use interlock_protocol::webhooks::{ChangeInbound, InboundView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfEndpoint};
use crate::state::AppState;

/// Pause an address, or change how it drops repeats
#[utoipa::path(
    patch,
    path = path::INBOUND_ONE,
    tag = "webhooks",
    params(OfEndpoint),
    request_body = ChangeInbound,
    responses((status = 200, description = "The address.", body = InboundView)),
)]
pub async fn change(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Body(change): Body<ChangeInbound>,
) -> Result<Json<InboundView>, ApiError> {
    let change = InboundChange { secondary: change.secondary, paused: change.paused };
    let row = state.webhooks().change_inbound(caller.tenant, &named, change, &caller.actor()).await?;
    Ok(Json(view::endpoint(&state, &caller, row).await?))
}
