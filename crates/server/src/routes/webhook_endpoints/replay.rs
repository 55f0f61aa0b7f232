//! `POST /webhook-endpoints/{endpoint}/replay`: sends one delivery again, or those of a span of time.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_engine::webhooks::outbound;
use interlock_protocol::webhooks::{Replay, Replayed, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, OfEndpoint};
use crate::state::AppState;

/// Send deliveries again
///
/// Either `delivery_id`, or `from` (and `to`). Receivers see the same `webhook-id` as the first time.
#[utoipa::path(
    post,
    path = path::OUTBOUND_REPLAY,
    tag = "webhook-endpoints",
    params(OfEndpoint),
    request_body = Replay,
    responses((status = 202, description = "How many were queued.", body = Replayed)),
)]
pub async fn replay(
    State(state): State<AppState>,
    caller: Caller,
    OfEndpoint(named): OfEndpoint,
    Body(replay): Body<Replay>,
) -> Result<(StatusCode, Json<Replayed>), ApiError> {
    let what = match (replay.delivery_id, replay.from) {
        (Some(id), None) => outbound::Replay::One(id),
        (None, Some(from)) => {
            let to = replay.to.unwrap_or_else(|| state.now());
            outbound::Replay::Between { from, to, dead_only: replay.dead_only }
        }
        _ => return Err(ApiError::invalid("say `delivery_id`, or `from` and perhaps `to`")),
    };
    let queued = state.webhooks().replay_messages(caller.tenant, &named, what, &caller.actor()).await?;
    Ok((StatusCode::ACCEPTED, Json(Replayed { queued })))
}
