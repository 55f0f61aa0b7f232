//! `POST /webhook-endpoints`: makes an address that is told of events.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_protocol::webhooks::{self, OutboundMade, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Make an endpoint that is told of events
///
/// Messages are signed by Standard Webhooks. The secret is told in this answer only.
#[utoipa::path(
    post,
    path = path::OUTBOUND,
    tag = "webhook-endpoints",
    request_body = webhooks::NewOutbound,
    responses((status = 201, description = "The endpoint and its secret.", body = OutboundMade)),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Body(new): Body<webhooks::NewOutbound>,
) -> Result<Response, ApiError> {
    let webhooks::NewOutbound { url, description, events, workflows } = new;
    let new = NewOutbound { url, description, events, workflows };
    let by = caller.responsible().map(str::to_owned);
    let (row, secret) = state.engine().create_outbound(caller.tenant, new, by).await?;
    let location = path::OUTBOUND_ONE.replace("{endpoint}", &row.id.to_string());
    let body = Json(OutboundMade { endpoint: view::endpoint(row), secret });
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], body).into_response())
}
