//! `POST /dead-letters/replay`: sends messages again that were given up.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_engine::EngineError;
use interlock_engine::webhooks::outbound::REPLAY_MAX;
use interlock_protocol::webhooks::{ReplayDead, Replayed, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Send messages again that were given up
///
/// Either `message_id` or `all`. A message keeps its id, so that receivers can drop what they have seen.
#[utoipa::path(
    post,
    path = path::DEAD_LETTERS_REPLAY,
    tag = "dead-letters",
    request_body = ReplayDead,
    responses((status = 202, description = "How many were queued.", body = Replayed)),
)]
pub async fn replay(
    State(state): State<AppState>,
    caller: Caller,
    Body(replay): Body<ReplayDead>,
) -> Result<(StatusCode, Json<Replayed>), ApiError> {
    let ids = match (replay.message_id, replay.all) {
        (Some(id), false) => vec![id],
        (None, true) => {
            let letters = state.for_tenant(caller.tenant).dead_letters(None, REPLAY_MAX).await?;
            letters.into_iter().map(|letter| letter.id).collect()
        }
        _ => return Err(ApiError::invalid("say `message_id`, or `all`")),
    };
    let queued = state.webhooks().replay_dead(caller.tenant, ids, &caller.actor()).await?;
    if let Some(id) = replay.message_id.filter(|_| queued == 0) {
        return Err(EngineError::UnknownEndpoint { name: id.to_string() }.into());
    }
    Ok((StatusCode::ACCEPTED, Json(Replayed { queued: queued as usize })))
}
