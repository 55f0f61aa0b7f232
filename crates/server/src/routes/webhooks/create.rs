//! `POST /webhooks`: makes an address at which webhooks are taken.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_engine::webhooks::inbound::NewInbound;
use interlock_protocol::webhooks::{self, InboundMade, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Make an address at which webhooks are taken
///
/// Where no secret is given one is made, and told in this answer only.
#[utoipa::path(
    post,
    path = path::INBOUND,
    tag = "webhooks",
    request_body = webhooks::NewInbound,
    responses((status = 201, description = "The address, and its secret if one was made.", body = InboundMade)),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    Body(new): Body<webhooks::NewInbound>,
) -> Result<Response, ApiError> {
    let webhooks::NewInbound { name, source, header: signed_in, secondary, secret } = new;
    let new = NewInbound { name, source, header: signed_in, secondary, secret };
    let by = caller.responsible().map(str::to_owned);
    let (row, secret) = state.engine().create_inbound(caller.tenant, new, by).await?;
    let endpoint = view::endpoint(row);
    let location = endpoint.path.clone();
    let body = Json(InboundMade { endpoint, secret });
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], body).into_response())
}
