//! `DELETE /workers/{session}`: a worker that is over leaves the lists.

use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::ids::SessionId;
use interlock_protocol::operations::path;
use interlock_store::{Changed, ForgetSession};
use serde_json::json;

use super::view::{self, OfWorker};
use crate::api_error::ApiError;
use crate::identity::{Caller, note};
use crate::state::AppState;

/// Forget a worker that is over
///
/// One that lives, or still holds steps, is refused.
#[utoipa::path(
    delete,
    path = path::WORKER,
    tag = "operations",
    operation_id = "forget_worker",
    params(("session" = SessionId, Path)),
    responses((status = 204, description = "It is forgotten.")),
)]
pub async fn forget(
    State(state): State<AppState>,
    caller: Caller,
    OfWorker(row): OfWorker,
) -> Result<StatusCode, ApiError> {
    let what = note::by(&caller, "worker.forgotten", row.id, &json!({ "worker": row.worker }));
    let forget = ForgetSession { tenant: caller.tenant, session: row.id, now: state.now() };
    match state.identity().write_noted(caller.tenant, forget, what).await? {
        Changed::Gone => {
            Err(view::alive(&row, "drain it first (`interlock worker drain`), or wait until its lease is over"))
        }
        Changed::Done => Ok(StatusCode::NO_CONTENT),
    }
}
