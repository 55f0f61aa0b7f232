//! `POST /webhook-endpoints`: makes an address that is told of events.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_protocol::webhooks::{self, OutboundMade, path};

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
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
    params(IdempotencyHeaders),
    request_body = webhooks::NewOutbound,
    responses(
        (status = 201, description = "The endpoint and its secret.", body = OutboundMade),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(new): Body<webhooks::NewOutbound>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "webhook endpoints" };
    let asked = new.clone();
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, new, keep))).await
}

async fn add(
    state: &AppState,
    caller: &Caller,
    new: webhooks::NewOutbound,
    keep: Keep<'_>,
) -> Result<Made<OutboundMade>, ApiError> {
    let webhooks::NewOutbound { name, url, description, events, workflows } = new;
    let new = NewOutbound { name, url, description, events, workflows };
    let (row, secret) = state.webhooks().draft_outbound(caller.tenant, new, Some(caller.name())).await?;
    let location = path::OUTBOUND_ONE.replace("{endpoint}", &row.id.to_string());
    let endpoint = view::endpoint(state, caller, row.clone()).await?;
    let made = OutboundMade { endpoint, secret, shown_once: Vec::new() };
    let made = Made::created(made).at(location).showing_once(&["secret"]);
    state.webhooks().add_outbound(row, &caller.actor(), keep.answer(&made)?).await?;
    Ok(made)
}
