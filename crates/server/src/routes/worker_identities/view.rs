//! A worker identity as an answer, and the one that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::time::Timestamp;
use interlock_protocol::enrolment::{WorkerIdentityState, WorkerIdentityView};
use interlock_store::WorkerIdentityRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::request::named_in_path;
use crate::state::AppState;

pub fn identity(row: WorkerIdentityRow, now: Timestamp) -> WorkerIdentityView {
    let state = match (row.revoked_at, row.enrolled_at, row.certificate_expires_at) {
        (Some(_), ..) => WorkerIdentityState::Revoked,
        (None, Some(_), Some(until)) if now < until => WorkerIdentityState::Enrolled,
        (None, Some(_), _) => WorkerIdentityState::Expired,
        (None, None, _) if now < row.token_expires_at => WorkerIdentityState::Invited,
        (None, None, _) => WorkerIdentityState::Lapsed,
    };
    WorkerIdentityView {
        identity: row.id,
        name: row.name,
        terms: row.terms,
        state,
        created_at: row.created_at,
        created_by: row.created_by,
        token_expires_at: row.token_expires_at,
        enrolled_at: row.enrolled_at,
        renewed_at: row.renewed_at,
        certificate_expires_at: row.certificate_expires_at,
        revoked_at: row.revoked_at,
        revoked_by: row.revoked_by,
    }
}

/// Identities for a caller, with the names of the keys that made and revoked them.
pub async fn named(state: &AppState, caller: &Caller, identities: &mut [WorkerIdentityView]) -> Result<(), ApiError> {
    let names = identities.iter_mut().flat_map(|one| one.created_by.iter_mut().chain(one.revoked_by.iter_mut()));
    name_keys(state, caller, names.collect()).await
}

/// The worker identity that the path names, if it is one of the caller's tenant.
pub struct OfWorkerIdentity(pub WorkerIdentityRow);

impl FromRequestParts<AppState> for OfWorkerIdentity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "identity").await?;
        let found = match text.parse() {
            Ok(id) => state.for_tenant(caller.tenant).worker_identity(id).await?,
            Err(_) => None,
        };
        found.map(Self).ok_or_else(|| ApiError::unknown("worker identity", &text))
    }
}
