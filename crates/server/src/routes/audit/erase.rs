//! `POST /audit/erasures`: what the log tells of a person is erased.

use axum::Json;
use axum::extract::State;
use interlock_core::limits::NAME_BYTES_MAX;
use interlock_engine::audit::erase::LogPlace;
use interlock_protocol::audit::{DetailsErased, EraseDetails, LogPlaceView, limits, path};
use interlock_store::EraseAuditDetails;
use serde_json::json;

use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::request::Body;
use crate::state::AppState;

/// Erase what the log tells of a person
///
/// The details of entries in which the person acted or is named go, and the salts by which they could be guessed. The entries
/// stay, and the log verifies as before. One call looks at a part of the log: ask again with `from` where the answer has a
/// `next`. What was erased before is not erased again.
#[utoipa::path(
    post,
    path = path::ERASURES,
    tag = "audit",
    request_body = EraseDetails,
    responses((status = 200, description = "How many details went, and where to go on.", body = DetailsErased)),
)]
pub async fn erase(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<EraseDetails>,
) -> Result<Json<DetailsErased>, ApiError> {
    check("person", &body.person, NAME_BYTES_MAX)?;
    check("reason", &body.reason, limits::REASON_BYTES_MAX)?;
    let tenant = caller.tenant;
    let from = body.from.map_or(LogPlace::FIRST, |from| LogPlace { number: from.log, entry: from.entry });
    let telling = state.audit().telling_of(tenant, &body.person, from).await?;
    let erased = telling.entries.len() as u64;
    if erased > 0 {
        // Who it was about is what is being forgotten, so the note does not name them.
        let details = json!({ "reason": body.reason, "log": telling.number, "entries": telling.entries });
        let what = note::by(&caller, "audit.erased", telling.number, &details);
        let erase = EraseAuditDetails { tenant, number: telling.number, entries: telling.entries };
        state.identity().write_noted(tenant, erase, what).await?;
    }
    let next = telling.next.map(|next| LogPlaceView { log: next.number, entry: next.entry });
    Ok(Json(DetailsErased { erased, next }))
}

fn check(field: &str, text: &str, bytes_max: usize) -> Result<(), ApiError> {
    if text.trim().is_empty() || text.len() > bytes_max {
        return Err(ApiError::invalid(format!("`{field}` has to say something, in at most {bytes_max} bytes")));
    }
    Ok(())
}
