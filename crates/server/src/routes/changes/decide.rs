//! `POST /changes/{change}/decision`: a second admin agrees, or does not. Agreeing carries nothing out.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::ids::ChangeId;
use interlock_core::text::visible::is_blank;
use interlock_protocol::changes::{ChangeView, DecideChange, limits, path};
use interlock_store::{ChangeState, Changed};

use super::view::{self, OfChange};
use crate::api_error::ApiError;
use crate::identity::fresh::Matter;
use crate::identity::{Caller, note};
use crate::request::Body;
use crate::state::AppState;

/// Decide on a change
///
/// By a person who is signed in, has the role `admin`, and has not asked for it. The requester carries it out after
/// that, by making the same request again with the header `interlock-change`.
#[utoipa::path(
    post,
    path = path::DECISION,
    tag = "changes",
    params(("change" = ChangeId, Path)),
    request_body = DecideChange,
    responses((status = 200, description = "The change as it is now.", body = ChangeView)),
)]
pub async fn decide(
    State(state): State<AppState>,
    caller: Caller,
    OfChange(mut row): OfChange,
    Body(word): Body<DecideChange>,
) -> Result<Json<ChangeView>, ApiError> {
    let person = caller.as_voter()?.to_owned();
    let now = state.now();
    if row.excluded.contains(&person) {
        let detail = "you have asked for it, or a key of yours has: another admin decides";
        return Err(ApiError::new(StatusCode::CONFLICT, "APPROVAL_VOTE_REFUSED", detail));
    }
    if word.notes.as_ref().is_some_and(|notes| notes.len() > limits::NOTES_BYTES_MAX) {
        return Err(ApiError::invalid(format!("`notes` has {} bytes at most", limits::NOTES_BYTES_MAX)));
    }
    if !word.approve && is_blank(word.notes.as_deref().unwrap_or_default()) {
        return Err(ApiError::invalid("`notes` says why it is rejected, and is needed for that"));
    }
    if word.approve {
        caller.check_proven_lately(now)?;
        let excluded = row.excluded.iter().cloned().collect();
        let matter = Matter { tenant: caller.tenant, excluded, since: row.asked_at, one_of_two: true };
        matter.check(&state, &person).await?;
    }
    let (new_state, until, kind) = if word.approve {
        (ChangeState::Approved, now + limits::USED_WITHIN, "change.approved")
    } else {
        (ChangeState::Rejected, row.expires_at, "change.rejected")
    };
    let details = serde_json::json!({ "subject": row.subject, "method": row.method, "path": row.path });
    let what = note::by(&caller, kind, row.id, &details);
    let decided = interlock_store::DecideChange {
        tenant: caller.tenant,
        change: row.id,
        state: new_state,
        by: person.clone(),
        at: now,
        notes: word.notes.clone(),
        until,
    };
    if state.identity().write_noted(caller.tenant, decided, what).await? == Changed::Gone {
        let detail = format!("{} is decided on already, or its day is over", row.id);
        return Err(ApiError::new(StatusCode::CONFLICT, "APPROVAL_NOT_OPEN", detail));
    }
    (row.state, row.decided_by, row.decided_at, row.notes, row.expires_at) =
        (new_state, Some(person), Some(now), word.notes, until);
    Ok(Json(view::change(row, now)))
}
