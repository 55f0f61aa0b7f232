//! Which approval a vote on a run is about. A run can be voted on without naming anything only where nothing can be
//! mistaken: one approval is open, and not much hangs on it. Otherwise the digest says what was looked at.

use interlock_core::ids::{ApprovalId, RunId};
use interlock_core::plan::Plan;
use interlock_core::plan::tier::Tier;
use interlock_core::run::Run;
use interlock_core::state::ApprovalState;
use interlock_protocol::approvals::ApprovalView;
use interlock_store::ApprovalRow;

use super::view;
use crate::api_error::ApiError;
use crate::state::AppState;

/// Which of a run's open approvals a vote is on, as far as it says.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApprovalSelector<'a> {
    pub approval: Option<ApprovalId>,
    pub position: Option<u32>,
    pub digest: Option<&'a str>,
}

/// The run's open approval that is meant.
pub async fn pick(state: &AppState, run: &Run, meant: ApprovalSelector<'_>) -> Result<ApprovalRow, ApiError> {
    let mut rows = state.for_tenant(run.tenant).approvals_of(run.id).await?;
    rows.retain(|row| row.state == ApprovalState::Requested);
    let mut open = Vec::with_capacity(rows.len());
    for row in &rows {
        open.push(view::approval(state, run, row.clone()).await?);
    }
    let chosen = choose(run.id, &run.plan, &open, meant)?;
    rows.into_iter().find(|row| row.id == chosen).ok_or_else(|| not_open(run.id, &open, meant))
}

fn choose(run: RunId, plan: &Plan, open: &[ApprovalView], meant: ApprovalSelector<'_>) -> Result<ApprovalId, ApiError> {
    let is_meant = |view: &&ApprovalView| {
        meant.approval.is_none_or(|named| named == view.approval)
            && meant.position.is_none_or(|position| position == view.position)
    };
    let candidates: Vec<&ApprovalView> = open.iter().filter(is_meant).collect();
    let Some(first) = candidates.first() else { return Err(not_open(run, open, meant)) };
    if let Some(digest) = meant.digest {
        let found = candidates.iter().find(|view| view.digest == digest);
        return found.map(|view| view.approval).ok_or_else(|| match candidates.len() {
            1 => ApiError::approval_changed(first),
            _ => ApiError::digest_required("the digest is that of none of them", open),
        });
    }
    if open.len() > 1 {
        return Err(ApiError::digest_required(&format!("{run} waits for {} approvals", open.len()), open));
    }
    if !first.purpose.is_gate() {
        let why = format!("it is asked whether to {} the step, not whether to pass a gate", first.purpose);
        return Err(ApiError::digest_required(&why, open));
    }
    if first.tier.unwrap_or_else(|| plan.tier(first.position)) == Tier::High {
        let step = plan.step(first.position).map_or("?", |step| step.key.as_str());
        let why = format!("much hangs on step `{step}`: its tier is high");
        return Err(ApiError::digest_required(&why, open));
    }
    Ok(first.approval)
}

fn not_open(run: RunId, open: &[ApprovalView], meant: ApprovalSelector<'_>) -> ApiError {
    let detail = match (meant.approval, meant.position) {
        (Some(named), _) => format!("{run} does not wait for approval {named}"),
        (None, Some(position)) => format!("step {} of {run} waits for no approval", position + 1),
        (None, None) => format!("{run} waits for no approval"),
    };
    ApiError::approval_not_open(detail, open)
}

#[cfg(test)]
mod tests {
    use interlock_core::plan::StepSpec;
    use interlock_core::run::approval::Purpose;
    use interlock_core::time::Timestamp;

    use super::*;

    fn open(number: u8, position: u32) -> ApprovalView {
        ApprovalView {
            approval: ApprovalId::from_bytes([number; 16]),
            run_id: RunId::from_bytes([9; 16]),
            workflow: "w".into(),
            subject: None,
            started_by: None,
            tier: None,
            may_decide: None,
            position,
            step: None,
            state: ApprovalState::Requested,
            purpose: Purpose::Gate,
            digest: format!("digest {number}"),
            message: None,
            quorum: 1,
            approvers: vec![],
            and_from: vec![],
            action: None,
            present_state: vec![],
            excluded: vec![],
            self_approval: false,
            on_reject: None,
            on_expiry: None,
            votes: vec![],
            fallen: vec![],
            requested_at: Timestamp(0),
            escalate_at: None,
            expires_at: Timestamp(1),
            resolved_at: None,
        }
    }

    fn code(answer: Result<ApprovalId, ApiError>) -> String {
        answer.unwrap_err().code().to_owned()
    }

    /// No run has two today; the rule is there before the branches.
    #[test]
    fn one_of_several_is_named_by_its_digest() {
        let (plan, both) = (Plan::new("demo", vec![StepSpec::task("a", "a")]), [open(1, 0), open(2, 1)]);
        let choose = |meant| choose(both[0].run_id, &plan, &both, meant);
        let nothing = choose(ApprovalSelector::default()).unwrap_err();
        assert_eq!(nothing.code(), "APPROVAL_DIGEST_REQUIRED");
        assert!(nothing.detail().contains("digest 1") && nothing.detail().contains("digest 2"), "{}", nothing.detail());
        let named = ApprovalSelector { approval: Some(both[0].approval), ..ApprovalSelector::default() };
        assert_eq!(code(choose(named)), "APPROVAL_DIGEST_REQUIRED", "its name is not its digest");
        let shown = |digest| ApprovalSelector { digest: Some(digest), ..ApprovalSelector::default() };
        assert_eq!(choose(shown("digest 2")).unwrap(), both[1].approval);
        assert_eq!(code(choose(shown("other"))), "APPROVAL_DIGEST_REQUIRED");
        let stale = ApprovalSelector { position: Some(0), ..shown("digest 2") };
        assert_eq!(code(choose(stale)), "APPROVAL_CHANGED");
    }
}
