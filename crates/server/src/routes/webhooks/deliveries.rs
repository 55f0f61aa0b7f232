//! `GET /webhooks/{endpoint}/deliveries`: what came in, newest first, and what became of it.

use axum::Json;
use axum::extract::State;
use interlock_core::time::Timestamp;
use interlock_protocol::runs::limits;
use interlock_protocol::webhooks::{InboundDelivery, InboundDeliveryList, path};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{OfEndpoint, cut};
use crate::state::AppState;

const PAGE_DEFAULT: usize = 50;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct InboundDeliveryParams {
    limit: Option<usize>,
    /// The instant before which the page begins.
    before: Option<Timestamp>,
}

/// List what came in at an address
#[utoipa::path(
    get,
    path = path::INBOUND_DELIVERIES,
    tag = "webhooks",
    params(OfEndpoint, InboundDeliveryParams),
    responses((status = 200, description = "A page of deliveries, newest first.", body = InboundDeliveryList)),
)]
pub async fn deliveries(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Params(params): Params<InboundDeliveryParams>,
) -> Result<Json<InboundDeliveryList>, ApiError> {
    let row = state.webhooks().inbound(caller.tenant, &named).await?;
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, limits::PAGE_MAX);
    let before = params.before.unwrap_or(Timestamp(i64::MAX));
    let mut records = state.for_tenant(caller.tenant).deliveries(row.id, before, limit + 1).await?;
    let next_before = cut(&mut records, limit, |record| record.delivery.received_at);
    let deliveries = records.into_iter().map(|record| InboundDelivery {
        delivery: record.delivery.at.key,
        event: record.delivery.event,
        received_at: record.delivery.received_at,
        status: record.state,
        attempts: record.attempts,
        answer: record.response,
        error: record.error,
    });
    Ok(Json(InboundDeliveryList { deliveries: deliveries.collect(), next_before }))
}
