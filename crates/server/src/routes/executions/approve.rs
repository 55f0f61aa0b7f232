//! `POST /executions/{session_id}/approve`: one person's word on the step that waits for it.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::RunId;
use interlock_core::rejection::Rejection;
use interlock_protocol::approvals::Voted;
use interlock_protocol::executions::{ApproveStep, StepApproved, path};

use super::{view, words};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, NamedRun};
use crate::routes::approvals::pick::ApprovalSelector;
use crate::routes::approvals::repeat::{decided_before, open_or_repeated};
use crate::routes::approvals::vote::{VoteInput, cast, loaded};
use crate::routes::approvals::voter::VoterClaims;
use crate::state::AppState;

/// Approve or reject a step
///
/// The answer says what was decided. To reject, `notes` says why. Only people decide, never keys.
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
    NamedRun { tenant, run }: NamedRun,
    Body(body): Body<ApproveStep>,
) -> Result<Json<StepApproved>, ApiError> {
    let run = loaded(&state, tenant, run).await?;
    let position = view::position(&run, body.step_number)?;
    let person = caller.as_voter()?;
    let by = VoterClaims { on_behalf_of: body.on_behalf_of, role: body.approver_role };
    let word = VoteInput { approve: body.approved, notes: body.notes, digest: body.digest, by };
    let meant = ApprovalSelector { approval: None, position: Some(position), digest: word.digest.as_deref() };
    let row = match decided_before(&state, &run, meant, person, &word).await? {
        Some(row) => row,
        None if run.state.is_terminal() => {
            return Err(Rejection::Terminal { run: run.id, state: run.state }.into());
        }
        None => open_or_repeated(&state, &run, meant, person, &word).await?,
    };
    let Voted { approval, summary, run_state, .. } = cast(&state, &caller, &run, row, word).await?;
    let step = run.spec(approval.position).key.clone();
    let tier = approval.tier.unwrap_or_else(|| run.plan.tier(approval.position));
    let status = words::session(run_state, None).to_owned();
    Ok(Json(StepApproved { session_id: run.id, status, step, tier, summary, approval: view::task(approval) }))
}
