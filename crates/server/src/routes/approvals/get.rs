//! `GET /approvals/{approval}`: one approval, with its votes.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::ApprovalId;
use interlock_protocol::approvals::{ApprovalView, path};

use super::view::{self, OfApproval};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Look at an approval
#[utoipa::path(
    get,
    path = path::APPROVAL,
    tag = "approvals",
    params(("approval" = ApprovalId, Path)),
    responses((status = 200, description = "The approval, with its votes.", body = ApprovalView)),
)]
pub async fn get(
    State(state): State<AppState>,
    caller: Caller,
    OfApproval { row, .. }: OfApproval,
) -> Result<Json<ApprovalView>, ApiError> {
    let (run, position) = (row.run, row.position);
    let mut approval = view::looked_up_by(&state, &caller, row).await?;
    if approval.step.is_none() {
        let steps = state.for_tenant(caller.tenant).steps(run).await?;
        approval.step = steps.into_iter().find(|step| step.position == position).map(|step| step.key);
    }
    Ok(Json(approval))
}
