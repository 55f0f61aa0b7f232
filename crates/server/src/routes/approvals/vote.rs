//! `POST /approvals/{approval}/vote`: one person's word on exactly what they were shown, and how every vote is cast.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::run::Run;
use interlock_core::run::approval::Approval;
use interlock_core::state::RunState;
use interlock_core::text::visible::{is_blank, visible};
use interlock_engine::EngineError;
use interlock_engine::commands::vote::VoteRequest;
use interlock_protocol::approvals::{ApprovalView, CastVote, Voted, path};
use interlock_store::ApprovalRow;

use super::may_decide::open_approval;
use super::repeat::is_repeated;
use super::view::{self, OfApproval};
use super::voter::{Question, VoterClaims, voter};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Vote
///
/// One person's word on exactly what they were shown; to reject, `notes` says why. Only people vote, never keys. The same
/// as `POST /approvals/{approval}/decision`, under its older name.
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
    caller.as_voter()?;
    let run = loaded(&state, tenant, row.run).await?;
    let by = VoterClaims { on_behalf_of: body.on_behalf_of, role: None };
    let word = VoteInput { approve: body.approve, notes: body.notes, digest: Some(body.digest), by };
    cast(&state, &caller, &run, row, word).await.map(Json)
}

/// One vote as it was sent: yes or no, why, on which digest, and in whose right.
pub struct VoteInput {
    pub approve: bool,
    pub notes: Option<String>,
    pub digest: Option<String>,
    pub by: VoterClaims,
}

/// The run that is voted on.
pub async fn loaded(state: &AppState, tenant: TenantId, run: RunId) -> Result<Run, ApiError> {
    state.for_tenant(tenant).load_run(run).await?.ok_or_else(|| ApiError::unknown_run(run))
}

/// A rejection needs a reason: others have nothing else to go by. `field` is what the request calls it.
pub fn check_comment(field: &str, approve: bool, comment: Option<&str>) -> Result<(), ApiError> {
    if approve || comment.is_some_and(|comment| !is_blank(comment)) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("a rejection needs a reason: say in `{field}` why, it stands beside your vote")))
}

/// How often a vote is weighed at most: anew where another vote came, or an account changed, before it was committed.
const WEIGHED_MAX: u32 = 5;

/// Every way to vote over HTTP comes through here.
pub async fn cast(
    state: &AppState,
    caller: &Caller,
    run: &Run,
    row: ApprovalRow,
    word: VoteInput,
) -> Result<Voted, ApiError> {
    check_comment("notes", word.approve, word.notes.as_deref())?;
    let (tenant, approval, person) = (run.tenant, row.id, caller.as_voter()?);
    let shown = view::approval(state, run, row).await?;
    if word.digest.as_ref().is_some_and(|digest| *digest != shown.digest) {
        return Err(ApiError::approval_changed(&shown));
    }
    // A vote that has fallen is not among the votes shown: its person may cast it anew.
    if is_repeated(&shown.votes, person, &word) {
        let now = loaded(state, tenant, run.id).await?;
        return Ok(voted(run, shown, person, (now.state, now.version)));
    }
    // Where people of several lists are needed, those of each may decide.
    let asked = open_approval(run, approval).map_or_else(|| shown.approvers.clone(), Approval::asked_groups);
    let question = Question { approvers: &asked, quorum: shown.quorum, approve: word.approve };
    let (mut meanwhile, mut tries) = (None, 1..WEIGHED_MAX);
    let cast = loop {
        let voter = voter(state, caller, meanwhile.as_ref().unwrap_or(run), question, &word.by).await?;
        let request = VoteRequest { approval, voter, approve: word.approve, notes: word.notes.clone() };
        let cast = state.runs().vote_by(tenant, run.id, request, caller.vote_metadata()).await;
        if !matches!(cast, Err(EngineError::Contended { .. })) || tries.next().is_none() {
            break cast;
        }
        meanwhile = Some(loaded(state, tenant, run.id).await?);
    };
    let row = state.for_tenant(tenant).approval(approval).await?;
    let row = row.ok_or_else(|| ApiError::unknown("approval", &approval.to_string()))?;
    let approval = view::looked_up(state, tenant, row).await?;
    let stands = match cast {
        Ok(standing) => (standing.state, standing.version),
        // The same vote came twice at once, and the other one was faster.
        Err(_) if is_repeated(&approval.votes, person, &word) => {
            let after = loaded(state, tenant, run.id).await?;
            (after.state, after.version)
        }
        Err(error) => return Err(error.into()),
    };
    Ok(voted(run, approval, person, stands))
}

fn voted(run: &Run, approval: ApprovalView, person: &str, (run_state, run_version): (RunState, u64)) -> Voted {
    Voted {
        summary: summary(run, &approval, person),
        // Said of what was decided as well, as it stood before the vote.
        approval: ApprovalView {
            tier: view::tier(run, &approval),
            step: Some(run.spec(approval.position).key.clone()),
            ..approval
        },
        run_state,
        run_version,
    }
}

/// What was decided, so that the voter can see whether it is what they meant.
fn summary(run: &Run, approval: &ApprovalView, person: &str) -> String {
    let vote = approval.votes.iter().find(|vote| vote.person == person);
    let verb = if vote.is_none_or(|vote| vote.approve) { "approved" } else { "rejected" };
    let whose = vote.and_then(|vote| vote.on_behalf_of.as_ref());
    let who = whose.map_or_else(|| person.to_owned(), |whose| format!("{person} on behalf of {whose}"));
    let (step, plan) = (&run.spec(approval.position).key, &run.plan);
    let mut text = format!("{who} {verb} step `{step}` of {} version {}", plan.workflow, plan.version);
    if let Some(message) = &approval.message {
        text = format!("{text}: {}", visible(message));
    }
    text
}
