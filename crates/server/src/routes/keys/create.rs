//! `POST /keys`: a new key, whose text is in the answer and nowhere else.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::tenant::identity::Role;
use interlock_engine::EngineError;
use interlock_protocol::identity::{CreateKey, CreatedKey, path};
use interlock_store::{AddKey, Stored};

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::key::KeyText;
use crate::identity::{Caller, NewKey, keys};
use crate::request::{Body, name};
use crate::state::AppState;

/// Make a key
///
/// Its text is in the answer and nowhere else.
#[utoipa::path(
    post,
    path = path::KEYS,
    tag = "keys",
    params(IdempotencyHeaders),
    request_body = CreateKey,
    responses(
        (status = 201, description = "The key, with its text.", body = CreatedKey),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateKey>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "keys" };
    let asked = body.clone();
    let make = async |keep: Keep<'_>| {
        let new = checked(&state, &caller, body).await?;
        let text = KeyText::random();
        let row = new.row(state.fresh(), state.identity().secret(), &text, None);
        let made = Made::created(view::created(&caller, row.clone(), &text)).showing_once(&["text"]);
        let what = keys::created(&row, &caller.actor());
        match state.identity().write_answering(caller.tenant, AddKey(row), what, keep.answer(&made)?).await? {
            Stored::Stored => Ok(made),
            Stored::Duplicate => Err(EngineError::Overloaded.into()),
        }
    };
    Box::pin(keyed.once_keeping(&asked, make)).await
}

async fn checked(state: &AppState, caller: &Caller, body: CreateKey) -> Result<NewKey, ApiError> {
    let mut new = NewKey::new(caller.tenant, name("name", body.name)?, body.roles);
    if new.roles.is_empty() {
        return Err(ApiError::invalid("a key needs at least one role: viewer, operator, approver, admin, worker"));
    }
    // An admin of one workspace makes keys for that workspace.
    new.workspace = caller.workspace_for(body.workspace)?;
    if new.workspace.is_some() && new.roles.contains(Role::Worker) {
        return Err(ApiError::invalid(
            "a worker takes the steps of all workspaces: make its key without `workspace`, and without other roles",
        ));
    }
    new.owner = match body.owner {
        Some(owner) => Some(owner_named(state, caller, owner).await?),
        None => caller.responsible().map(str::to_owned),
    };
    new.requests_per_min = body.requests_per_min.filter(|limit| *limit > 0);
    new.expires_at = body.expires_in_ms.map(|span| state.now() + span);
    new.created_by = Some(caller.maker_of_key(new.owner.as_deref())?);
    Ok(new)
}

/// The owner: a person of the tenant who can be asked about the key.
async fn owner_named(state: &AppState, caller: &Caller, owner: String) -> Result<String, ApiError> {
    match state.for_tenant(caller.tenant).user_named(&owner).await? {
        Some(user) if user.disabled_at.is_none() => Ok(user.name),
        _ => Err(ApiError::invalid(format!("the owner `{owner}` is no person of this tenant"))),
    }
}
