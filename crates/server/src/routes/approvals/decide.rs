//! `POST /approvals/{approval}/decision`: one person's decision on an approval, with their comment.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::ApprovalId;
use interlock_protocol::approvals::{ApprovalDecision, DecideApproval, Voted, path};

use super::pick::ApprovalSelector;
use super::repeat::{is_repeated, open_or_repeated};
use super::view::{self, OfApproval};
use super::vote::{VoteInput, cast, check_comment, loaded};
use super::voter::VoterClaims;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Decide on an approval
///
/// One person's decision; to reject, it needs a comment. Without a `digest` only where the tier is not high. Only people
/// decide, never keys. Who says the same once more gets the approval as it stands.
#[utoipa::path(
    post,
    path = path::DECISION,
    tag = "approvals",
    params(("approval" = ApprovalId, Path)),
    request_body = DecideApproval,
    responses((status = 200, description = "Where approval and run stand.", body = Voted)),
)]
pub async fn decide(
    State(state): State<AppState>,
    caller: Caller,
    OfApproval { tenant, row }: OfApproval,
    Body(body): Body<DecideApproval>,
) -> Result<Json<Voted>, ApiError> {
    let person = caller.as_voter()?;
    let approve = body.decision == ApprovalDecision::Approve;
    check_comment("comment", approve, body.comment.as_deref())?;
    let run = loaded(&state, tenant, row.run).await?;
    let by = VoterClaims { on_behalf_of: body.on_behalf_of, role: None };
    let word = VoteInput { approve, notes: body.comment, digest: body.digest, by };
    // Of the votes that count: one that has fallen is cast anew, and needs a digest as it did the first time.
    let repeated =
        word.digest.is_none() && is_repeated(&view::approval(&state, &run, row.clone()).await?.votes, person, &word);
    let row = if word.digest.is_some() || repeated {
        row
    } else {
        // A vote without a digest counts only where a vote on the run would need none either.
        let meant = ApprovalSelector { approval: Some(row.id), ..ApprovalSelector::default() };
        open_or_repeated(&state, &run, meant, person, &word).await?
    };
    cast(&state, &caller, &run, row, word).await.map(Json)
}
