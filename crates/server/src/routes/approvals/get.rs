//! `GET /approvals/{approval}`: one approval, with its votes.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::{ApprovalId, RunId};
use interlock_protocol::approvals::{ApprovalView, path};
use interlock_store::{ReadError, TenantStore};

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
        approval.step = step_key(&state.for_tenant(caller.tenant), run, position).await?;
    }
    Ok(Json(approval))
}

/// The key of a step by the run's plan, which the store keeps in memory. Only a step that was added to the run, as those of
/// a rollback are, needs the run's own steps.
async fn step_key(store: &TenantStore, run: RunId, position: u32) -> Result<Option<String>, ApiError> {
    if let Some(hash) = store.plan_hash_of(run).await? {
        match store.plan(hash).await {
            Ok(plan) => {
                if let Some(step) = plan.step(position) {
                    return Ok(Some(step.key.clone()));
                }
            }
            Err(ReadError::Corrupt(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    let steps = store.steps(run).await?;
    Ok(steps.into_iter().find(|step| step.position == position).map(|step| step.key))
}
