//! `GET /approvals/{approval}`: one approval, with its votes.

use axum::Json;
use interlock_core::ids::ApprovalId;
use interlock_protocol::approvals::{ApprovalView, path};

use super::view::{self, OfApproval};
use crate::api_error::ApiError;

/// Look at an approval
#[utoipa::path(
    get,
    path = path::APPROVAL,
    tag = "approvals",
    params(("approval" = ApprovalId, Path)),
    responses((status = 200, description = "The approval, with its votes.", body = ApprovalView)),
)]
pub async fn get(OfApproval { tenant, row }: OfApproval) -> Result<Json<ApprovalView>, ApiError> {
    view::approval(tenant, row).map(Json)
}
