//! `POST /worker-identities`: a worker may enrol; its token is in the answer and nowhere else.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use interlock_core::ids::WorkerIdentityId;
use interlock_engine::EngineError;
use interlock_protocol::enrolment::{CreateWorkerIdentity, CreatedWorkerIdentity, limits, path};
use interlock_store::{AddWorkerIdentity, Stored, WorkerIdentityRow};
use serde_json::json;

use super::view;
use crate::api_error::ApiError;
use crate::idempotency::{IdempotencyHeaders, IdempotentRequest, Keep, Made};
use crate::identity::enrol::EnrolToken;
use crate::identity::{Caller, note};
use crate::request::{Body, name};
use crate::state::AppState;

/// Let a worker enrol
///
/// Its one-time token is in the answer and nowhere else.
#[utoipa::path(
    post,
    path = path::IDENTITIES,
    tag = "worker identities",
    operation_id = "create_worker_identity",
    params(IdempotencyHeaders),
    request_body = CreateWorkerIdentity,
    responses(
        (status = 201, description = "The worker that may enrol, with its token.", body = CreatedWorkerIdentity),
        (status = 202, description = "The same request is still being worked on."),
    ),
)]
pub async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateWorkerIdentity>,
) -> Result<Response, ApiError> {
    let keyed = IdempotentRequest { state: &state, headers: &headers, caller: &caller, source: "worker-identities" };
    let asked = body.clone();
    let make = async |keep: Keep<'_>| {
        let token = EnrolToken::random();
        let row = row(&state, &caller, body, &token)?;
        let details = json!({ "name": row.name, "terms": row.terms });
        let what = note::by(&caller, "worker_identity.created", row.id, &details);
        let mut identity = view::identity(row.clone(), state.now());
        identity.created_by = caller.in_words(identity.created_by);
        let answer = CreatedWorkerIdentity { identity, token: token.reveal().to_owned(), shown_once: Vec::new() };
        let made = Made::created(answer).showing_once(&["token"]);
        let add = AddWorkerIdentity(row);
        match state.identity().write_answering(caller.tenant, add, what, keep.answer(&made)?).await? {
            Stored::Stored => Ok(made),
            Stored::Duplicate => Err(EngineError::Overloaded.into()),
        }
    };
    Box::pin(keyed.once_keeping(&asked, make)).await
}

fn row(
    state: &AppState,
    caller: &Caller,
    body: CreateWorkerIdentity,
    token: &EnrolToken,
) -> Result<WorkerIdentityRow, ApiError> {
    body.terms.check().map_err(ApiError::invalid)?;
    body.terms.check_known().map_err(ApiError::invalid)?;
    let lifetime = body.token_expires_in_ms.unwrap_or(limits::TOKEN_LIFETIME);
    if lifetime.0 == 0 || lifetime > limits::TOKEN_LIFETIME_MAX {
        return Err(ApiError::invalid("a token can be used for 1 ms to 7 days"));
    }
    let now = state.now();
    Ok(WorkerIdentityRow {
        tenant: caller.tenant,
        id: WorkerIdentityId(state.fresh_id()),
        name: name("name", body.name)?,
        terms: body.terms,
        token_lookup: token.lookup().to_owned(),
        token_hash: token.hash(state.identity().secret()),
        token_expires_at: now + lifetime,
        created_at: now,
        created_by: Some(caller.name()),
        enrolled_at: None,
        key_hash: None,
        renewed_at: None,
        certificate_expires_at: None,
        revoked_at: None,
        revoked_by: None,
    })
}
