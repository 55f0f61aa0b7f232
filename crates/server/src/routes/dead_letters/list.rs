//! `GET /dead-letters`: messages that were given up, newest first.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::OutboxId;
use interlock_core::text::visible::visible;
use interlock_protocol::webhooks::{DeadLetterList, DeadLetterView, path};
use interlock_store::DeadLetter;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::Params;
use crate::request::{PAGE_DEFAULT, cut};
use crate::state::AppState;

const PAGE_MAX: usize = 500;

/// A page of messages, newest first: those that were given up, or an endpoint's deliveries.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessagePage {
    pub limit: Option<usize>,
    /// The message before which the page begins: `next_before` of the page above.
    pub before: Option<OutboxId>,
}

/// List messages that were given up
///
/// Of every kind: to webhook endpoints, and signals that tasks send to runs.
#[utoipa::path(
    get,
    path = path::DEAD_LETTERS,
    tag = "dead-letters",
    params(MessagePage),
    responses((status = 200, description = "A page of messages, newest first.", body = DeadLetterList)),
)]
pub async fn list(
    State(state): State<AppState>,
    caller: Caller,
    Params(params): Params<MessagePage>,
) -> Result<Json<DeadLetterList>, ApiError> {
    let limit = params.limit.unwrap_or(PAGE_DEFAULT).clamp(1, PAGE_MAX);
    let mut letters = state.for_tenant(caller.tenant).dead_letters(params.before, limit + 1).await?;
    let next_before = cut(&mut letters, limit, |letter| letter.id);
    Ok(Json(DeadLetterList { dead_letters: letters.into_iter().map(view).collect(), next_before }))
}

fn view(letter: DeadLetter) -> DeadLetterView {
    DeadLetterView {
        message_id: letter.id,
        destination: visible(&letter.destination).into_owned(),
        run_id: letter.run,
        created_at: letter.created_at,
        dead_at: letter.dead_at,
        attempts: letter.attempts,
        error: letter.error.map(|error| visible(&error).into_owned()),
    }
}
