//! `GET /webhook-endpoints/{endpoint}/deliveries`: what was sent there, newest first, with every try.

use axum::Json;
use axum::extract::State;
use interlock_protocol::runs::limits;
use interlock_protocol::webhooks::{OutboundDeliveryList, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{OfEndpoint, cut};
use crate::routes::dead_letters::MessagePage;
use crate::state::AppState;

/// Each delivery brings its tries along.
const PAGE_DEFAULT: usize = 20;

/// List what was sent to an endpoint
#[utoipa::path(
    get,
    path = path::OUTBOUND_DELIVERIES,
    tag = "webhook-endpoints",
    params(OfEndpoint, MessagePage),
    responses((status = 200, description = "A page of deliveries, newest first.", body = OutboundDeliveryList)),
)]
pub async fn deliveries(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Params(params): Params<MessagePage>,
) -> Result<Json<OutboundDeliveryList>, ApiError> {
    let row = state.webhooks().outbound_endpoint(caller.tenant, &named).await?;
    let reads = state.for_tenant(caller.tenant);
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let mut messages = reads.messages(row.id, params.before, limit + 1).await?;
    let next_before = cut(&mut messages, limit, |message| message.id);
    let mut deliveries = Vec::with_capacity(messages.len());
    for message in messages {
        let attempts = reads.attempts(message.id).await?;
        deliveries.push(view::delivery(message, attempts));
    }
    Ok(Json(OutboundDeliveryList { deliveries, next_before }))
}
