//! `DELETE /webhooks/{endpoint}`: nothing is taken there any more.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::webhooks::path;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::OfEndpoint;
use crate::state::AppState;

/// Remove an address at which webhooks are taken
#[utoipa::path(
    delete,
    path = path::INBOUND_ONE,
    tag = "webhooks",
    params(OfEndpoint),
    responses((status = 204, description = "It is gone.")),
)]
pub async fn remove(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
) -> Result<StatusCode, ApiError> {
    state.webhooks().remove_inbound(caller.tenant, &named, &caller.actor()).await?;
    Ok(StatusCode::NO_CONTENT)
}
