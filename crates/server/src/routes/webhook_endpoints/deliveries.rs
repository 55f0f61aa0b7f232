//! `GET /webhook-endpoints/{endpoint}/deliveries`: what was sent there, newest first, with every try.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use interlock_core::ids::OutboxId;
use interlock_protocol::runs::limits;
use interlock_protocol::webhooks::{OutboundDeliveryList, path};
use interlock_store::AttemptRow;

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
    // Newest first: the page goes from its last message to its first.
    let mut attempts: HashMap<OutboxId, Vec<AttemptRow>> = HashMap::new();
    if let (Some(newest), Some(oldest)) = (messages.first(), messages.last()) {
        for (message, attempt) in reads.attempts(row.id, oldest.id..=newest.id).await? {
            attempts.entry(message).or_default().push(attempt);
        }
    }
    let deliveries = messages.into_iter().map(|message| {
        let tried = attempts.remove(&message.id).unwrap_or_default();
        view::delivery(message, tried)
    });
    Ok(Json(OutboundDeliveryList { deliveries: deliveries.collect(), next_before }))
}
