//! One person's word on an approval. Every path that decides comes through here.

use std::ops::ControlFlow;

use interlock_boxed::boxed;
use interlock_core::decide::Command;
use interlock_core::ids::{ApprovalId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::rejection::Rejection;
use interlock_core::run::approval::{AccountRights, Approval, FallenVote, Vote, VoteToDrop, Voter};
use interlock_core::run::change::Context;
use interlock_core::run::{Phase, Run};
use interlock_core::state::{ApprovalState, Initiator};
use interlock_core::tenant::identity::Permission;
use interlock_store::UserRow;

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
    /// Votes that were cast and count no more.
    pub fallen: Vec<FallenVote>,
}

/// The earlier votes on an open approval, by what the accounts of their people may do now.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WeighedVotes {
    /// Votes whose people could not cast them any more: [`Approval::vote`] does not count them.
    pub fallen: Vec<VoteToDrop>,
    /// The accounts that the other votes rest on.
    pub accounts: Vec<AccountRights>,
}

impl Runs {
    /// What the tenant, the author of the workflow version and the accounts of its voters mean for an open approval of the run.
    #[boxed]
    pub async fn approval_exclusions(&self, run: &Run, open: &Approval) -> Result<ApprovalExclusions, EngineError> {
        let author =
            if open.excludes_author || open.quorum > 1 { self.version_author(run.tenant, run).await? } else { None };
        let tenant = self.0.0.store.tenant(run.tenant).await?;
        let tenant_allows = tenant.is_some_and(|tenant| tenant.settings.self_approval);
        let mut fallen = open.missing_votes();
        let now_fallen = self.weigh_votes(run.tenant, open).await?.fallen;
        fallen.extend(now_fallen.into_iter().map(|fell| FallenVote { person: fell.vote.person, why: fell.why }));
        Ok(ApprovalExclusions { author, self_approval: open.allows_self(&run.plan, tenant_allows), fallen })
    }

    /// Looks at the accounts of those who have said yes to an open approval.
    #[boxed]
    pub async fn weigh_votes(&self, tenant: TenantId, open: &Approval) -> Result<WeighedVotes, EngineError> {
        let mut weighed = WeighedVotes::default();
        if open.state != ApprovalState::Requested {
            return Ok(weighed);
        }
        for vote in open.votes.iter().filter(|vote| vote.approve) {
            match Box::pin(self.accounts_behind(tenant, open, vote)).await? {
                Ok(accounts) => weighed.accounts.extend(accounts),
                Err(why) => weighed.fallen.push(VoteToDrop { vote: vote.clone(), why }),
            }
        }
        Ok(weighed)
    }

    /// The accounts that a vote rests on, or what has taken the right away in which it was cast.
    async fn accounts_behind(
        &self,
        tenant: TenantId,
        open: &Approval,
        vote: &Vote,
    ) -> Result<Result<Vec<AccountRights>, String>, EngineError> {
        let store = self.0.for_tenant(tenant);
        let person = vote.person.as_str();
        let holder = vote.on_behalf_of.as_deref().unwrap_or(person);
        let mut accounts = Vec::new();
        // A delegation that is over since was used in its time: the vote stays that of the person who lent the right.
        if holder != person {
            match usable(person, store.user_named(person).await?) {
                Ok(account) => accounts.push(account.rights()),
                Err(why) => return Ok(Err(why)),
            }
        }
        let account = match usable(holder, store.user_named(holder).await?) {
            Ok(account) => account,
            Err(why) => return Ok(Err(why)),
        };
        if !account.roles.grant(Permission::Vote) {
            return Ok(Err(format!("{holder} has no role any more that may approve")));
        }
        if let Some(why) = left_group(open, vote, &account) {
            return Ok(Err(why));
        }
        accounts.push(account.rights());
        Ok(Ok(accounts))
    }

    /// Who wrote the version of the workflow that the run has pinned: two keys need others.
    #[boxed]
    pub async fn version_author(&self, tenant: TenantId, run: &Run) -> Result<Option<String>, EngineError> {
        let version = self.0.0.store.workflow_version(tenant, &run.plan.workflow, run.plan.version).await?;
        Ok(version.and_then(|version| workflows::author(version.created_by)))
    }

    #[boxed]
    pub async fn vote(&self, tenant: TenantId, run: RunId, request: VoteRequest) -> Result<RunStatus, EngineError> {
        self.vote_by(tenant, run, request, None).await
    }

    /// The same, with what the history tells of the way by which it came.
    #[boxed]
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

/// The account, if its person can still sign in.
fn usable(name: &str, account: Option<UserRow>) -> Result<UserRow, String> {
    match account {
        Some(account) if account.disabled_at.is_none() => Ok(account),
        Some(_) => Err(format!("the account {name} is disabled")),
        None => Err(format!("there is no account {name} any more")),
    }
}

/// The group that gave the vote its weight, and of which the account is no longer.
fn left_group(open: &Approval, vote: &Vote, account: &UserRow) -> Option<String> {
    let is_in = |group: &&String| account.groups.contains(group);
    let name = &account.name;
    // Where people of several lists are needed, the vote says for which groups it counts.
    if let Some(left) = vote.groups.iter().find(|group| !is_in(group)) {
        return Some(format!("{name} is not in the group {left} any more"));
    }
    let asked = open.asked_groups();
    let lost = !asked.is_empty() && !asked.iter().any(|group| is_in(&group));
    lost.then(|| format!("{name} is in none of the groups {} any more", asked.join(", ")))
}
