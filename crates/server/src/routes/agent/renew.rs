//! `POST /agent/renew`: a worker with a good certificate gets the next one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::json::Hash;
use interlock_pki::{SigningRequest, WorkerIdentity};
use interlock_protocol::enrolment::{RenewCertificate, WorkerCertificate, path};
use interlock_store::{Changed, RenewWorker};
use serde_json::json;

use super::enrol::unavailable;
use crate::api_error::ApiError;
use crate::identity::{Caller, Via, note};
use crate::request::Body;
use crate::state::AppState;

/// Renew a worker's certificate
///
/// Whether the worker was revoked is looked up in the store.
#[utoipa::path(
    post,
    path = path::RENEW,
    tag = "agent",
    request_body = RenewCertificate,
    responses((status = 200, description = "The next certificate.", body = WorkerCertificate)),
)]
pub async fn renew(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<RenewCertificate>,
) -> Result<Json<WorkerCertificate>, ApiError> {
    let Via::Worker(worker) = &caller.via else {
        let detail = "only a worker that shows its certificate can renew it; one with an API key has none";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "CERTIFICATE_REQUIRED", detail));
    };
    let issuer = state.worker_issuer().ok_or_else(unavailable)?;
    let request = SigningRequest::parse(&body.request).map_err(|error| ApiError::invalid(error.to_string()))?;
    let store = state.for_tenant(caller.tenant);
    // The terms of the token are those of every certificate.
    let row = store.worker_identity(worker.identity).await?.ok_or_else(ApiError::unauthorized)?;
    let now = state.now();
    let identity = WorkerIdentity { tenant: caller.tenant, id: row.id, terms: row.terms.clone() };
    let signed = issuer.sign(&request, &identity, now).map_err(|error| {
        tracing::error!(%error, "a worker's certificate could not be signed");
        unavailable()
    })?;
    let renew =
        RenewWorker { tenant: caller.tenant, identity: row.id, at: now, certificate_expires_at: signed.expires_at };
    // The next certificate may be for another key: the log says which.
    let key = Hash::of(request.public_key_der());
    let details = json!({ "name": row.name, "key": key.to_string(), "certificate_expires_at": signed.expires_at });
    let what = note::by(&caller, "worker_identity.renewed", row.id, &details);
    if state.identity().write_noted(caller.tenant, renew, what).await? == Changed::Gone {
        return Err(ApiError::unauthorized());
    }
    Ok(Json(WorkerCertificate {
        identity: row.id,
        name: Some(row.name),
        certificate: signed.certificate,
        authorities: issuer.authorities().to_owned(),
        expires_at: signed.expires_at,
        terms: row.terms,
    }))
}
