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
    view::looked_up_by(&state, &caller, row).await.map(Json)
}
