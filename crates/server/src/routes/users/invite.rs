//! `POST /users/{user}/invite`: a link by which the person sets a password, once.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::ids::UserId;
use interlock_engine::EngineError;
use interlock_protocol::identity::{Invite, path};
use interlock_protocol::runs::Nothing;
use interlock_store::{ChangeUser, Changed, InviteUser};

use super::view::{self, OfUser};
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::{Caller, note, people};
use crate::links::setup_link;
use crate::request::Body;
use crate::state::AppState;

/// Invite a person
///
/// A link by which the person sets a password, once.
#[utoipa::path(
    post,
    path = path::USER_INVITE,
    tag = "users",
    params(IdempotencyHeaders, ("user" = UserId, Path)),
    request_body = Nothing,
    responses(
        (status = 201, description = "The link.", body = Invite),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn invite(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    OfUser(user): OfUser,
    Body(Nothing {}): Body<Nothing>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "invites" };
    let make = async |keep: Keep<'_>| {
        let (new, invite) = state.identity().draft_invite(user.tenant, Some(user.id));
        let link = setup_link(&state.base_url(&headers), &new.token);
        let shown = Invite { link, expires_at: new.expires_at, shown_once: Vec::new() };
        let made = Made::created(shown).showing_once(&["link"]);
        for _ in 0..people::CHANGE_TRIES {
            let read = view::reread(&state, &user).await?;
            caller.check_charge_of(read.installation)?;
            let mut user = read.clone();
            // The holder of the link gets in as this person.
            people::note_access(&mut user, &caller, state.now());
            let what = note::by(&caller, "user.invited", user.id, &serde_json::json!({ "name": user.name }));
            let invited = InviteUser { invite, account: ChangeUser { read, user } };
            let answer = keep.answer(&made)?;
            if state.identity().write_answering(caller.tenant, invited, what, answer).await? == Changed::Done {
                return Ok(made);
            }
        }
        Err(ApiError::from(EngineError::Overloaded))
    };
    Box::pin(keyed.once_keeping(&user.id, make)).await
}
