//! An approval as an answer, and the approval that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_engine::slack::approval_digest;
use interlock_protocol::approvals::ApprovalView;
use interlock_store::ApprovalRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::state::AppState;

pub fn approval(tenant: TenantId, row: ApprovalRow) -> Result<ApprovalView, ApiError> {
    let action = row.action.as_ref().map(Json::decode).transpose();
    let action = action.map_err(|error| ApiError::invalid(format!("its action cannot be read: {error}")))?;
    let digest = approval_digest(tenant, &row);
    let digest = digest.map_err(|error| ApiError::invalid(format!("it cannot be hashed: {error}")))?;
    Ok(ApprovalView {
        digest,
        action,
        approval: row.id,
        run_id: row.run,
        position: row.position,
        state: row.state,
        purpose: row.purpose,
        message: row.message,
        quorum: row.quorum,
        approvers: row.approvers,
        excluded: row.excluded,
        votes: row.votes,
        requested_at: row.requested_at,
        escalate_at: row.escalate_at,
        expires_at: row.expires_at,
        resolved_at: row.resolved_at,
    })
}

/// The approval that the path names, if it exists for the caller.
pub struct OfApproval {
    pub tenant: TenantId,
    pub row: ApprovalRow,
}

impl FromRequestParts<AppState> for OfApproval {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let text = named_in_path(parts, state, "approval").await?;
        let unknown = || ApiError::unknown("approval", &text);
        let Ok(id) = text.parse() else { return Err(unknown()) };
        let row = state.for_tenant(caller.tenant).approval(id).await?.ok_or_else(unknown)?;
        caller.reach(state, row.run).await.map_err(|_| unknown())?;
        Ok(Self { tenant: caller.tenant, row })
    }
}
