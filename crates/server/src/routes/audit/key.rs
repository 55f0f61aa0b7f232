//! `GET /audit/key`: the public key that heads and bundles are verified with.

use axum::Json;
use axum::extract::State;
use interlock_protocol::audit::{AuditKey, path};

use crate::api_error::ApiError;
use crate::state::AppState;

/// The key that audit logs and evidence are signed with
///
/// One for the installation. Keep it where the server cannot change it: a verifier believes this key and nothing else.
#[utoipa::path(
    get,
    path = path::KEY,
    tag = "audit",
    responses((status = 200, description = "The public key.", body = AuditKey)),
)]
pub async fn key(State(state): State<AppState>) -> Result<Json<AuditKey>, ApiError> {
    let audit = state.audit();
    let key = audit.key()?;
    Ok(Json(AuditKey {
        algorithm: "ed25519".to_owned(),
        key_id: key.id().to_string(),
        public_key: key.to_pem(),
        verifier_key: key.to_note_line(),
    }))
}
