//! `POST /agent/enrol`: a one-time token earns a certificate.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::json::Hash;
use interlock_pki::{SigningRequest, WorkerIdentity};
use interlock_protocol::enrolment::{Enrol, WorkerCertificate, path};
use interlock_store::{Changed, EnrolWorker};
use serde_json::json;

use crate::api_error::ApiError;
use crate::identity::note;
use crate::request::Body;
use crate::state::AppState;

/// Enrol a worker
///
/// The token can be used once; a repeat with the same key, whose answer was lost, gets a certificate again.
#[utoipa::path(
    post,
    path = path::ENROL,
    tag = "agent",
    request_body = Enrol,
    responses((status = 200, description = "The worker's certificate.", body = WorkerCertificate)),
)]
pub async fn enrol(
    State(state): State<AppState>,
    Body(body): Body<Enrol>,
) -> Result<Json<WorkerCertificate>, ApiError> {
    let issuer = state.worker_issuer().ok_or_else(unavailable)?;
    let request = SigningRequest::parse(&body.request).map_err(|error| ApiError::invalid(error.to_string()))?;
    let row = state.identity().enrolling(&body.token).await?.ok_or_else(refused)?;
    let now = state.now();
    let identity = WorkerIdentity { tenant: row.tenant, id: row.id, terms: row.terms.clone() };
    let signed = issuer.sign(&request, &identity, now).map_err(|error| {
        tracing::error!(%error, "a worker's certificate could not be signed");
        unavailable()
    })?;
    let enrol = EnrolWorker {
        tenant: row.tenant,
        identity: row.id,
        key_hash: Hash::of(request.public_key_der()),
        at: now,
        certificate_expires_at: signed.expires_at,
    };
    let details = json!({ "name": row.name, "certificate_expires_at": signed.expires_at });
    let what = note::done("worker_identity.enrolled", None, row.id, &details);
    // What counts is the row: another key, or a revocation, may have been faster.
    let written = state.identity().write_noted(row.tenant, enrol, what).await?;
    if written == Changed::Gone {
        return Err(refused());
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

/// One answer for a token that is unknown, used, over or revoked: it tells a guesser nothing.
fn refused() -> ApiError {
    let detail = "this token is unknown, over, revoked, or was used with another key; `interlock worker token create` makes \
                  another one";
    ApiError::new(StatusCode::UNAUTHORIZED, "ENROLMENT_REFUSED", detail)
}

pub(super) fn unavailable() -> ApiError {
    let detail = "this server cannot sign certificates for workers: it needs HTTPS and an authority (`interlock worker ca init`, \
                  or --tls-worker-ca)";
    ApiError::new(StatusCode::CONFLICT, "ENROLMENT_UNAVAILABLE", detail)
}
