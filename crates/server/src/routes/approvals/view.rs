//! An approval as an answer, and the approval that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::plan::tier::Tier;
use interlock_core::plan::{OnDenial, Work};
use interlock_core::run::Run;
use interlock_core::run::approval::{FallenVote, Others, is_person};
use interlock_core::run::card::ActionCard;
use interlock_core::state::ApprovalState;
use interlock_engine::commands::vote::ApprovalExclusions;
use interlock_engine::slack::approval_digest;
use interlock_protocol::approvals::ApprovalView;
use interlock_store::ApprovalRow;

use super::may_decide::{may_decide, open_approval};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::routes::runs::view::payload;
use crate::state::AppState;

/// An approval of the run.
pub async fn approval(state: &AppState, run: &Run, row: ApprovalRow) -> Result<ApprovalView, ApiError> {
    let told = told_by(state, run, &row).await?;
    shown(state, run.tenant, row, told)
}

/// The same where the run is not at hand. It is loaded where it waits, and so has more to say.
pub async fn looked_up(state: &AppState, tenant: TenantId, row: ApprovalRow) -> Result<ApprovalView, ApiError> {
    let run = waiting_run(state, tenant, &row).await?;
    let told = match run {
        Some(run) => told_by(state, &run, &row).await?,
        None => ApprovalContext::default(),
    };
    shown(state, tenant, row, told)
}

/// The same for a caller: it also says whether they may decide.
pub async fn looked_up_by(state: &AppState, caller: &Caller, row: ApprovalRow) -> Result<ApprovalView, ApiError> {
    let Some(run) = waiting_run(state, caller.tenant, &row).await? else {
        return shown(state, caller.tenant, row, ApprovalContext::default());
    };
    let may_decide = may_decide(state, caller, &run, row.id).await?;
    Ok(ApprovalView { may_decide, ..approval(state, &run, row).await? })
}

/// The run, where the approval is open.
async fn waiting_run(state: &AppState, tenant: TenantId, row: &ApprovalRow) -> Result<Option<Run>, ApiError> {
    match row.state {
        ApprovalState::Requested => Ok(state.for_tenant(tenant).load_run(row.run).await?),
        _ => Ok(None),
    }
}

/// What a vote has to name.
pub fn digest(tenant: TenantId, row: &ApprovalRow) -> Result<String, ApiError> {
    approval_digest(tenant, row).map_err(|error| ApiError::invalid(format!("it cannot be hashed: {error}")))
}

/// What the run itself knows of an approval that it waits for.
#[derive(Clone, Default)]
struct ApprovalContext {
    /// The key of the step that waits for it.
    step: Option<String>,
    /// The author of the workflow's version, where they may not decide.
    author: Option<String>,
    started_by: Option<String>,
    /// Whether those who started or directed the run may decide.
    self_approval: bool,
    tier: Option<Tier>,
    on_reject: Option<OnDenial>,
    on_expiry: Option<OnDenial>,
    /// Votes that count no more.
    fallen: Vec<FallenVote>,
    /// The lists of groups beside the first one, which the row of an approval that was asked by an earlier release has not.
    and_from: Vec<Others>,
}

/// The tier of an approval that is open in the run as it was read, or of a gate of its workflow.
pub fn tier(run: &Run, approval: &ApprovalView) -> Option<Tier> {
    let position = approval.position;
    let is_gate = run.plan.step(position).is_some_and(|step| matches!(step.work, Work::Approval(_)));
    match open_approval(run, approval.approval) {
        Some(open) => Some(open.tier_in(&run.plan, position)),
        None => is_gate.then(|| run.plan.tier(position)),
    }
}

async fn told_by(state: &AppState, run: &Run, row: &ApprovalRow) -> Result<ApprovalContext, ApiError> {
    let open = (row.state == ApprovalState::Requested).then(|| open_approval(run, row.id)).flatten();
    let in_run = (row.position as usize) < run.steps.len();
    let step = in_run.then(|| run.spec(row.position).key.clone());
    let Some(open) = open else { return Ok(ApprovalContext { step, ..ApprovalContext::default() }) };
    let ApprovalExclusions { author, self_approval, fallen } = state.runs().approval_exclusions(run, open).await?;
    Ok(ApprovalContext {
        step,
        // An author who may not decide is named among those who may not.
        self_approval: self_approval && author.is_none() && row.excluded.iter().any(|name| is_person(name)),
        author,
        started_by: Some(run.header.starter()),
        tier: Some(open.tier_in(&run.plan, row.position)),
        on_reject: Some(open.on_reject),
        on_expiry: Some(open.on_expiry),
        fallen,
        and_from: open.and_from.clone(),
    })
}

fn shown(
    state: &AppState,
    tenant: TenantId,
    row: ApprovalRow,
    told: ApprovalContext,
) -> Result<ApprovalView, ApiError> {
    let action = row.action.as_ref().map(Json::decode::<ActionCard>).transpose();
    let mut action = action.map_err(|error| ApiError::invalid(format!("its action cannot be read: {error}")))?;
    if let Some(action) = &mut action {
        // Long inputs by where they are to be had.
        for part in std::iter::once(&mut action.input).chain(action.then.iter_mut().map(|part| &mut part.input)) {
            *part = payload(state, row.run, part.clone());
        }
    }
    let digest = digest(tenant, &row)?;
    let (mut votes, mut excluded) = (row.votes, row.excluded);
    votes.retain(|vote| !told.fallen.iter().any(|fell| fell.person == vote.person));
    excluded.retain(|name| is_person(name));
    excluded.extend(told.author.filter(|author| !excluded.contains(author)));
    Ok(ApprovalView {
        digest,
        started_by: told.started_by,
        tier: told.tier,
        may_decide: None,
        on_reject: told.on_reject,
        on_expiry: told.on_expiry,
        action,
        present_state: row.present_state.and_then(|state| state.decode().ok()).unwrap_or_default(),
        approval: row.id,
        run_id: row.run,
        workflow: row.workflow,
        subject: row.subject,
        position: row.position,
        step: told.step,
        state: row.state,
        purpose: row.purpose,
        message: row.message,
        quorum: row.quorum,
        approvers: row.approvers,
        and_from: if told.and_from.is_empty() { row.and_from } else { told.and_from },
        excluded,
        self_approval: told.self_approval,
        votes,
        fallen: told.fallen,
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
