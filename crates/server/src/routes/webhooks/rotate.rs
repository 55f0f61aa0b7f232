//! `POST /webhooks/{endpoint}/rotate`: another secret; the one before counts for another day.

use axum::Json;
use axum::extract::State;
use interlock_protocol::webhooks::{InboundMade, Rotate, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfEndpoint};
use crate::state::AppState;

/// Give an address another secret
///
/// The secret before it counts for another 24 hours.
#[utoipa::path(
    post,
    path = path::INBOUND_ROTATE,
    tag = "webhooks",
    params(OfEndpoint),
    request_body = Rotate,
    responses((status = 200, description = "The address, and its secret if one was made.", body = InboundMade)),
)]
pub async fn rotate(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Body(rotate): Body<Rotate>,
) -> Result<Json<InboundMade>, ApiError> {
    caller.check_one_hand()?;
    let (row, secret) = state.webhooks().rotate_inbound(caller.tenant, &named, rotate.secret, &caller.actor()).await?;
    let endpoint = view::endpoint(&state, &caller, row).await?;
    Ok(Json(InboundMade { endpoint, secret, shown_once: Vec::new() }))
}
