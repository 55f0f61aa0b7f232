//! `POST /agent/renew`: a worker with a good certificate gets the next one.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_engine::EngineError;
use interlock_pki::{SigningRequest, WorkerIdentity};
use interlock_protocol::enrolment::{RenewCertificate, WorkerCertificate, path};
use interlock_store::{Changed, RenewWorker};

use super::enrol::unavailable;
use crate::api_error::ApiError;
use crate::identity::{Caller, Via};
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
    if store.write(renew).await.map_err(EngineError::from)? == Changed::Gone {
        return Err(ApiError::unauthorized());
    }
    Ok(Json(WorkerCertificate {
        identity: row.id,
        certificate: signed.certificate,
        authorities: issuer.authorities().to_owned(),
        expires_at: signed.expires_at,
        terms: row.terms,
    }))
}
