//! `POST /executions/{session_id}/approve`: one person's word on the step that waits for it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::identity::Role;
use interlock_core::ids::RunId;
use interlock_core::rejection::Rejection;
use interlock_core::state::ApprovalState;
use interlock_protocol::executions::{ApproveStep, StepApproved, path};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, Named};
use crate::routes::approvals::vote::{Word, cast};
use crate::state::AppState;

/// Approve or reject a step
///
/// The answer says what was decided. Only people decide, never keys.
#[utoipa::path(
    post,
    path = path::APPROVE,
    tag = "executions",
    params(("session_id" = RunId, Path)),
    request_body = ApproveStep,
    responses((status = 200, description = "Where approval and execution stand.", body = StepApproved)),
)]
pub async fn approve(
    State(state): State<AppState>,
    caller: Caller,
    Named { tenant, run }: Named,
    Body(body): Body<ApproveStep>,
) -> Result<Json<StepApproved>, ApiError> {
    let store = state.reads(tenant);
    let unknown = || ApiError::unknown_run(run);
    let found = store.load_runs(&[(tenant, run)]).await?.pop().ok_or_else(unknown)?;
    let number = body.step_number;
    let position = view::position(&found, number)?;
    check_role(&caller, body.approver_role.as_deref())?;
    let mut open = store.approvals_of(tenant, run).await?;
    open.retain(|row| row.state == ApprovalState::Requested && row.position == position);
    let Some(row) = open.pop() else {
        if found.state.is_terminal() {
            return Err(Rejection::Terminal { run, state: found.state }.into());
        }
        let detail = format!("step {number} of {run} waits for no approval");
        return Err(ApiError::new(StatusCode::CONFLICT, "APPROVAL_NOT_OPEN", detail));
    };
    let word = Word { approve: body.approved, notes: body.notes, digest: None };
    let Json(voted) = cast(&state, &caller, tenant, row, word).await?;
    let status = voted.run_state.on_runbook_surface(None).to_owned();
    Ok(Json(StepApproved { session_id: run, status, approval: view::task(voted.approval) }))
}

/// A role or group that somebody claims is one that they have.
fn check_role(caller: &Caller, claimed: Option<&str>) -> Result<(), ApiError> {
    let Some(claimed) = claimed else { return Ok(()) };
    let has_role = claimed.parse().is_ok_and(|role: Role| caller.roles.contains(role));
    if has_role || caller.groups.iter().any(|group| group == claimed) {
        return Ok(());
    }
    let named: String = claimed.chars().take(80).collect();
    let detail = format!("you have neither the role nor the group `{named}`; `approver_role` names one of yours");
    Err(ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail))
}
