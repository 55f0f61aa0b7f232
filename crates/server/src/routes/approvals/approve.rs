//! `POST /runs/{run}/approve`: a vote on what the run waits for. The answer says what was decided.

use axum::Json;
use axum::extract::State;
use interlock_protocol::approvals::{Approve, Voted, path};

use super::pick::ApprovalSelector;
use super::repeat::{decided_before, open_or_repeated};
use super::vote::{VoteInput, cast, loaded};
use super::voter::VoterClaims;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::{Body, NamedRun};
use crate::state::AppState;

/// Vote on what a run waits for
///
/// Without a `digest` only where one approval is open and its tier is not high. To reject, `notes` says why. The answer says
/// what was decided.
#[utoipa::path(
    post,
    path = path::APPROVE,
    tag = "approvals",
    params(NamedRun),
    request_body = Approve,
    responses((status = 200, description = "Where approval and run stand.", body = Voted)),
)]
pub async fn approve(
    State(state): State<AppState>,
    caller: Caller,
    NamedRun { tenant, run }: NamedRun,
    Body(body): Body<Approve>,
) -> Result<Json<Voted>, ApiError> {
    let run = loaded(&state, tenant, run).await?;
    let person = caller.as_voter()?;
    let by = VoterClaims { on_behalf_of: body.on_behalf_of, role: None };
    let word = VoteInput { approve: body.approve, notes: body.notes, digest: body.digest, by };
    let meant = ApprovalSelector { approval: body.approval, position: None, digest: word.digest.as_deref() };
    let row = match decided_before(&state, &run, meant, person, &word).await? {
        Some(row) => row,
        None => open_or_repeated(&state, &run, meant, person, &word).await?,
    };
    cast(&state, &caller, &run, row, word).await.map(Json)
}
