//! `GET /runs/{run}/payloads/{sha256}`: a payload of the run that is too long to stand in its row.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use interlock_core::json::HashHex;
use interlock_core::json::Json as Payload;
use interlock_engine::payloads::Reference;
use interlock_protocol::runs::path;

use crate::api_error::ApiError;
use crate::request::{NamedRun, PayloadHash};
use crate::state::AppState;

/// A long payload of the run
///
/// Inputs and outputs over the server's inline limit are shown as `{"$payload": {"sha256", "bytes", "url"}}`; this is
/// that `url`. The bytes are checked against the hash before they are sent.
#[utoipa::path(
    get,
    path = path::PAYLOAD,
    tag = "runs",
    params(NamedRun, PayloadHash),
    responses(
        (status = 200, description = "The payload, exactly as it was sent.", body = Payload),
        (status = 409, description = "The stored object was altered."),
        (status = 410, description = "The stored object is missing."),
    ),
)]
pub async fn payload(
    State(state): State<AppState>,
    NamedRun { tenant, run }: NamedRun,
    PayloadHash(text): PayloadHash,
) -> Result<Response, ApiError> {
    let unknown = || {
        let named: String = text.chars().take(80).collect();
        let detail = format!("the run has no payload `{named}` beside its row");
        ApiError::new(StatusCode::NOT_FOUND, "PAYLOAD_NOT_FOUND", detail)
    };
    let Ok(HashHex(sha256)) = serde_json::from_value(text.as_str().into()) else { return Err(unknown()) };
    let reads = state.for_tenant(tenant);
    let bytes = reads.payload_bytes(run, sha256).await?;
    let (Some(bytes), Some(payloads)) = (bytes, state.payloads()) else {
        // A run that is not there has no payloads, and is not there.
        return Err(match reads.run_overview(run).await? {
            Some(_) => unknown(),
            None => ApiError::unknown_run(run),
        });
    };
    let payload = payloads.get(tenant, &Reference { sha256, bytes }).await.map_err(ApiError::from)?;
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "private, immutable")];
    Ok((headers, payload.as_str().to_owned()).into_response())
}
