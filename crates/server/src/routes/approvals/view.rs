//! An approval as an answer, and the approval that a path names.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use interlock_core::ids::{ApprovalId, TenantId};
use interlock_core::json::Json;
use interlock_core::plan::OnDenial;
use interlock_core::run::card::ActionCard;
use interlock_core::run::{Phase, Run};
use interlock_core::state::ApprovalState;
use interlock_engine::slack::approval_digest;
use interlock_protocol::approvals::ApprovalView;
use interlock_store::ApprovalRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::routes::runs::view::payload;
use crate::state::AppState;

/// An approval of the run.
pub fn approval(state: &AppState, run: &Run, row: ApprovalRow) -> Result<ApprovalView, ApiError> {
    let denial = denial(run, row.id);
    shown(state, run.tenant, row, denial)
}

/// The same where the run is not at hand. It is loaded where it waits, and so has more to say.
pub async fn looked_up(state: &AppState, tenant: TenantId, row: ApprovalRow) -> Result<ApprovalView, ApiError> {
    let run = match row.state {
        ApprovalState::Requested => state.for_tenant(tenant).load_run(row.run).await?,
        _ => None,
    };
    let denial = run.and_then(|run| denial(&run, row.id));
    shown(state, tenant, row, denial)
}

/// What a vote has to name.
pub fn digest(tenant: TenantId, row: &ApprovalRow) -> Result<String, ApiError> {
    approval_digest(tenant, row).map_err(|error| ApiError::invalid(format!("it cannot be hashed: {error}")))
}

/// What becomes of a run whose approval is not given.
#[derive(Clone, Copy)]
struct DenialRules {
    on_reject: OnDenial,
    on_expiry: OnDenial,
}

/// The run knows it of the approval that it waits for.
fn denial(run: &Run, approval: ApprovalId) -> Option<DenialRules> {
    match &run.current().phase {
        Phase::WaitingApproval(open) if open.id == approval => {
            Some(DenialRules { on_reject: open.on_reject, on_expiry: open.on_expiry })
        }
        _ => None,
    }
}

fn shown(
    state: &AppState,
    tenant: TenantId,
    row: ApprovalRow,
    denial: Option<DenialRules>,
) -> Result<ApprovalView, ApiError> {
    let action = row.action.as_ref().map(Json::decode::<ActionCard>).transpose();
    let mut action = action.map_err(|error| ApiError::invalid(format!("its action cannot be read: {error}")))?;
    if let Some(action) = &mut action {
        // Long inputs by where they are to be had.
        for part in std::iter::once(&mut action.input).chain(action.then.iter_mut().map(|part| &mut part.input)) {
            *part = payload(state, row.run, part.clone());
        }
    }
    Ok(ApprovalView {
        digest: digest(tenant, &row)?,
        on_reject: denial.map(|rules| rules.on_reject),
        on_expiry: denial.map(|rules| rules.on_expiry),
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
