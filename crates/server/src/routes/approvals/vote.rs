//! `POST /approvals/{approval}/vote`: one person's word on exactly what they were shown.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use interlock_core::approval::Voter;
use interlock_core::ids::{ApprovalId, TenantId};
use interlock_engine::commands::vote::VoteRequest;
use interlock_protocol::approvals::{CastVote, Voted, path};
use interlock_store::ApprovalRow;

use super::view::{self, OfApproval};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Vote
///
/// One person's word on exactly what they were shown. Only people vote, never keys.
#[utoipa::path(
    post,
    path = path::VOTE,
    tag = "approvals",
    params(("approval" = ApprovalId, Path)),
    request_body = CastVote,
    responses((status = 200, description = "Where approval and run stand.", body = Voted)),
)]
pub async fn vote(
    State(state): State<AppState>,
    caller: Caller,
    OfApproval { tenant, row }: OfApproval,
    Body(body): Body<CastVote>,
) -> Result<Json<Voted>, ApiError> {
    let word = Word { approve: body.approve, notes: body.notes, digest: Some(body.digest) };
    cast(&state, &caller, tenant, row, word).await
}

/// What somebody says, and about what.
pub struct Word {
    pub approve: bool,
    pub notes: Option<String>,
    pub digest: Option<String>,
}

/// Every way to vote over HTTP comes through here.
pub async fn cast(
    state: &AppState,
    caller: &Caller,
    tenant: TenantId,
    row: ApprovalRow,
    word: Word,
) -> Result<Json<Voted>, ApiError> {
    let Some(person) = caller.person.as_deref() else {
        let detail = "only people decide, never keys: sign in, and vote as yourself";
        return Err(ApiError::new(StatusCode::FORBIDDEN, "PERSON_REQUIRED", detail));
    };
    let (approval, run) = (row.id, row.run);
    let shown = view::approval(tenant, row)?;
    if word.digest.is_some_and(|digest| digest != shown.digest) {
        return Err(ApiError::approval_changed(&shown));
    }
    let settings = state.engine().store().tenant(tenant).await?.map(|tenant| tenant.settings).unwrap_or_default();
    let voter = Voter {
        person: person.to_owned(),
        groups: caller.groups.to_vec(),
        self_approval: settings.self_approval,
        author: state.engine().wrote_version(tenant, run, person).await?,
    };
    let request = VoteRequest { approval, voter, approve: word.approve, notes: word.notes };
    let standing = state.engine().vote(tenant, run, request).await?;
    let row = state.reads(tenant).approval(tenant, approval).await?;
    let row = row.ok_or_else(|| ApiError::unknown("approval", &approval.to_string()))?;
    let approval = view::approval(tenant, row)?;
    Ok(Json(Voted { approval, run_state: standing.state, run_version: standing.version }))
}
