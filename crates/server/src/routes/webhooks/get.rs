//! `GET /webhooks/{endpoint}`: one address.

use axum::Json;
use axum::extract::State;
use interlock_protocol::webhooks::{InboundView, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfEndpoint;
use crate::state::AppState;

/// Look at an address at which webhooks are taken
#[utoipa::path(
    get,
    path = path::INBOUND_ONE,
    tag = "webhooks",
    params(OfEndpoint),
    responses((status = 200, description = "The address.", body = InboundView)),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
) -> Result<Json<InboundView>, ApiError> {
    let row = state.webhooks().inbound(caller.tenant, &named).await?;
    Ok(Json(view::endpoint(&state, &caller, row).await?))
}
