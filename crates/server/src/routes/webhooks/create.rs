//! `POST /webhooks`: makes an address at which webhooks are taken.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_engine::webhooks::inbound::NewInbound;
use interlock_protocol::webhooks::{self, InboundMade, path};

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
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
    params(IdempotencyHeaders),
    request_body = webhooks::NewInbound,
    responses(
        (status = 201, description = "The address, and its secret if one was made.", body = InboundMade),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(new): Body<webhooks::NewInbound>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "webhooks" };
    // What is kept of the request must not help to guess the secret.
    let seal = |secret: &String| state.identity().secret().hash("asked secret", secret.as_bytes()).to_string();
    let asked = webhooks::NewInbound { secret: new.secret.as_ref().map(seal), ..new.clone() };
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, new, keep))).await
}

async fn add(
    state: &AppState,
    caller: &Caller,
    new: webhooks::NewInbound,
    keep: Keep<'_>,
) -> Result<Made<InboundMade>, ApiError> {
    caller.check_one_hand()?;
    let webhooks::NewInbound { name, source, header: signed_in, secondary, secret } = new;
    let new = NewInbound { name, source, header: signed_in, secondary, secret };
    let (row, secret) = state.webhooks().draft_inbound(caller.tenant, new, Some(caller.name())).await?;
    let endpoint = view::endpoint(state, caller, row.clone()).await?;
    let location = endpoint.path.clone();
    let made = InboundMade { endpoint, secret, shown_once: Vec::new() };
    let made = Made::created(made).at(location).showing_once(&["secret"]);
    state.webhooks().add_inbound(row, &caller.actor(), keep.answer(&made)?).await?;
    Ok(made)
}
