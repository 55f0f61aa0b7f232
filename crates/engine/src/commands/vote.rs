//! One person's word on an approval. Every path that decides comes through here.

use std::ops::ControlFlow;

use interlock_core::decide::Command;
use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::rejection::Rejection;
use interlock_core::run::approval::{Approval, Voter};
use interlock_core::run::change::Context;
use interlock_core::run::{Phase, Run};
use interlock_core::state::Initiator;

use crate::commands::RunStatus;
use crate::error::EngineError;
use crate::parts::Runs;
use crate::workflows;

/// A vote on an exact approval: a decision on anything else is refused.
#[derive(Debug, Clone)]
pub struct VoteRequest {
    pub approval: ApprovalId,
    pub voter: Voter,
    pub approve: bool,
    pub notes: Option<String>,
}

/// Who may not decide an open approval beside those whom it names, and whether those whom it names may after all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalExclusions {
    /// The author of the workflow version, where they may not decide.
    pub author: Option<String>,
    /// The tenant lets the people whom the approval excludes decide, because they started or directed the run.
    pub self_approval: bool,
}

impl Runs {
    /// What the tenant and the author of the workflow version mean for an open approval of the run.
    pub async fn approval_exclusions(&self, run: &Run, open: &Approval) -> Result<ApprovalExclusions, EngineError> {
        let author =
            if open.excludes_author || open.quorum > 1 { self.version_author(run.tenant, run).await? } else { None };
        let tenant = self.0.0.store.tenant(run.tenant).await?;
        let tenant_allows = tenant.is_some_and(|tenant| tenant.settings.self_approval);
        Ok(ApprovalExclusions { author, self_approval: open.allows_self(&run.plan, tenant_allows) })
    }

    /// Who wrote the version of the workflow that the run has pinned: two keys need others.
    pub async fn version_author(&self, tenant: TenantId, run: &Run) -> Result<Option<String>, EngineError> {
        let version = self.0.0.store.workflow_version(tenant, &run.plan.workflow, run.plan.version).await?;
        Ok(version.and_then(|version| workflows::author(version.created_by)))
    }

    pub async fn vote(&self, tenant: TenantId, run: RunId, request: VoteRequest) -> Result<RunStatus, EngineError> {
        self.vote_by(tenant, run, request, None).await
    }

    /// The same, with what the history tells of the way by which it came.
    pub async fn vote_by(
        &self,
        tenant: TenantId,
        run: RunId,
        request: VoteRequest,
        metadata: Option<Json>,
    ) -> Result<RunStatus, EngineError> {
        let VoteRequest { approval, voter, approve, notes } = request;
        let by = Context { metadata, ..Context::of(Initiator::Approval, voter.person.clone()) };
        // The comment stands in the history beside the vote.
        let by = match &notes {
            Some(notes) => by.telling("reason", notes),
            None => by,
        };
        self.0
            .execute(
                tenant,
                run,
                by,
                |facts| {
                    let run = facts.run();
                    match &run.current().phase {
                        Phase::WaitingApproval(open) if open.id == approval => {}
                        _ if run.state.is_terminal() => {
                            return Err(Rejection::Terminal { run: run.id, state: run.state }.into());
                        }
                        _ => {
                            let why = "it is not the one that the run waits for now".to_owned();
                            return Err(Rejection::VoteRefused { approval, why }.into());
                        }
                    }
                    let (voter, notes) = (voter.clone(), notes.clone());
                    Ok(ControlFlow::Continue(Command::Vote { position: run.position, voter, approve, notes }))
                },
                |cell, _| RunStatus::of(cell.run.as_deref().expect("a command ran on it")),
            )
            .await
    }
}
