//! `POST /webhook-endpoints/{endpoint}/rotate`: another secret; for a day messages are signed with both.

use axum::Json;
use axum::extract::State;
use interlock_protocol::webhooks::{OutboundMade, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfEndpoint;
use crate::state::AppState;

/// Give an endpoint another secret
///
/// For 24 hours messages carry signatures of both secrets.
#[utoipa::path(
    post,
    path = path::OUTBOUND_ROTATE,
    tag = "webhook-endpoints",
    params(OfEndpoint),
    responses((status = 200, description = "The endpoint and its new secret.", body = OutboundMade)),
)]
pub async fn rotate(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
) -> Result<Json<OutboundMade>, ApiError> {
    let (row, secret) = state.webhooks().rotate_outbound(caller.tenant, &named, &caller.actor()).await?;
    let endpoint = view::endpoint(&state, &caller, row).await?;
    Ok(Json(OutboundMade { endpoint, secret, shown_once: Vec::new() }))
}
