//! `DELETE /webhook-endpoints/{endpoint}`: it is told nothing more; what was on its way ends.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::webhooks::path;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfEndpoint;
use crate::state::AppState;

/// Remove an endpoint that is told of events
#[utoipa::path(
    delete,
    path = path::OUTBOUND_ONE,
    tag = "webhook-endpoints",
    params(OfEndpoint),
    responses((status = 204, description = "It is gone.")),
)]
pub async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
) -> Result<StatusCode, ApiError> {
    state.webhooks().remove_outbound(caller.tenant, &named, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
