//! `POST /agent/broker`: a worker gets what it needs to make its calls over the broker, for a while.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_protocol::agent::path;
use interlock_protocol::broker::{BROKER_DISABLED, BrokerTicket};

use crate::api_error::ApiError;
use crate::guard::PERMISSION_DENIED;
use crate::identity::{Caller, ShownCredential};
use crate::state::AppState;

/// Get leave to make the calls of a session over the broker
///
/// Calls are written to a stream of the broker, sealed with the key of the answer, and their answers are read from
/// another. The broker's operator can neither read nor write them. It ends after a while, and at once with the worker's
/// credential.
#[utoipa::path(
    post,
    path = path::BROKER,
    tag = "agent",
    responses((status = 200, description = "Where to write calls, and what to seal them with.", body = BrokerTicket)),
)]
pub async fn broker(
    State(state): State<AppState>,
    caller: Caller,
    credential: ShownCredential,
) -> Result<Json<BrokerTicket>, ApiError> {
    let Some(broker) = state.broker() else {
        let detail = "this server has no broker: start it with --broker, or make requests";
        return Err(ApiError::new(StatusCode::NOT_FOUND, "BROKER_NOT_CONFIGURED", detail));
    };
    if !state.tenants().has_broker(caller.tenant).await? {
        return Err(disabled());
    }
    if !broker.is_connected() {
        let detail = "this server does not reach its broker; make requests meanwhile";
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "BROKER_UNAVAILABLE", detail));
    }
    let credential = credential.lasting(state.identity()).ok_or_else(|| {
        let detail = "only a worker with an API key or a certificate makes calls over the broker";
        ApiError::new(StatusCode::FORBIDDEN, PERMISSION_DENIED, detail)
    })?;
    Ok(Json(broker.admit(caller.tenant, credential, state.now())))
}

pub(crate) fn disabled() -> ApiError {
    let detail = "the tenant's workers do not use the broker: `worker_broker.enabled` is off";
    ApiError::new(StatusCode::FORBIDDEN, BROKER_DISABLED, detail)
}
