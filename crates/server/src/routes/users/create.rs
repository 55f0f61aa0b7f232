//! `POST /users`: an account for a person of the tenant. Without a password it waits for an invite or a provider.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_protocol::identity::{CreateUser, UserView, path};
use interlock_store::UserRow;

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::{Caller, access, people};
use crate::request::{Body, text};
use crate::state::AppState;

/// Make an account for a person
///
/// Without a password it waits for an invite or for a provider to vouch for the person.
#[utoipa::path(
    post,
    path = path::USERS,
    tag = "users",
    params(IdempotencyHeaders),
    request_body = CreateUser,
    responses(
        (status = 201, description = "The person.", body = UserView),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateUser>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "users" };
    // What is kept of the request must not help to guess the password.
    let seal = |password: &String| state.identity().secret().hash("asked password", password.as_bytes()).to_string();
    let asked = CreateUser { password: body.password.as_ref().map(seal), ..body.clone() };
    Box::pin(keyed.once_keeping(&asked, |keep| add(&state, &caller, body, keep))).await
}

async fn add(state: &AppState, caller: &Caller, body: CreateUser, keep: Keep<'_>) -> Result<Made<UserView>, ApiError> {
    let identity = state.identity();
    let password = match body.password {
        Some(password) => Some(identity.passwords().hash(password).await?),
        None => None,
    };
    let mut user = UserRow {
        display_name: text("display_name", body.display_name)?,
        email: text("email", body.email)?,
        roles: body.roles,
        groups: people::groups(body.groups)?,
        password,
        created_by: Some(caller.name()),
        ..identity.new_user(caller.tenant, people::person_name(body.name)?)
    };
    access::record_by(&mut user, caller, state.now());
    let mut shown = view::user(user.clone());
    shown.created_by = caller.in_words(shown.created_by);
    let made = Made::created(shown);
    identity.add_user_answering(&user, &caller.actor(), keep.answer(&made)?).await?;
    Ok(made)
}
