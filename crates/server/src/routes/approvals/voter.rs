//! In whose right a person votes: their own, or that of a person who has delegated it to them.

use std::iter;

use axum::http::StatusCode;
use interlock_core::run::approval::{AccountRights, Voter};
use interlock_core::run::{Phase, Run};
use interlock_core::tenant::identity::{Permission, Role, Roles};
use interlock_engine::commands::vote::WeighedVotes;

use crate::api_error::ApiError;
use crate::identity::access::AccessChange;
use crate::identity::delegation::LentRight;
use crate::identity::{Caller, fresh};
use crate::state::AppState;

/// What a vote says about its voter. All of it is checked, nothing believed.
#[derive(Debug, Clone, Default)]
pub struct VoterClaims {
    /// Whose right to decide is used.
    pub on_behalf_of: Option<String>,
    /// A role or group of the person whose right it is.
    pub role: Option<String>,
}

/// What is to be decided, as far as it matters who does.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub approvers: &'a [String],
    pub quorum: u32,
    /// The vote is yes. To say no, any person who may decide is good enough.
    pub approve: bool,
}

impl Question<'_> {
    /// It is the vote of one of several who must agree.
    const fn is_one_of_two(self) -> bool {
        self.approve && self.quorum > 1
    }
}

/// The right that is used.
struct Right<'a> {
    /// `None` is the person's own.
    of: Option<&'a str>,
    roles: Roles,
    groups: &'a [String],
    /// Another person has lent it out in its holder's name.
    lent_by_another: Option<AccessChange>,
}

impl Right<'_> {
    fn fits(&self, approvers: &[String]) -> bool {
        let in_group = approvers.is_empty() || approvers.iter().any(|group| self.groups.contains(group));
        self.roles.grant(Permission::Vote) && in_group
    }

    fn check_role(&self, claimed: Option<&str>) -> Result<(), ApiError> {
        let Some(claimed) = claimed else { return Ok(()) };
        let has_role = claimed.parse().is_ok_and(|role: Role| self.roles.contains(role));
        if has_role || self.groups.iter().any(|group| group == claimed) {
            return Ok(());
        }
        let named: String = claimed.chars().take(80).collect();
        let who = self.of.map_or_else(|| "you have".to_owned(), |whose| format!("{whose} has"));
        let detail =
            format!("{who} neither the role nor the group `{named}`; leave `approver_role` out, or name another");
        Err(ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail))
    }
}

/// The voter, who has signed in lately where two must agree.
pub async fn voter(
    state: &AppState,
    caller: &Caller,
    run: &Run,
    question: Question<'_>,
    claimed: &VoterClaims,
) -> Result<Voter, ApiError> {
    let voter = eligible(state, caller, run, question, claimed).await?;
    if question.is_one_of_two() {
        caller.check_proven_lately(state.now())?;
    }
    Ok(voter)
}

/// The caller as a voter, however long ago they signed in. A vote that does not say in whose right it is uses the
/// caller's own, if that is enough, else the first lent one that is.
pub async fn eligible(
    state: &AppState,
    caller: &Caller,
    run: &Run,
    question: Question<'_>,
    claimed: &VoterClaims,
) -> Result<Voter, ApiError> {
    let person = caller.as_voter()?;
    let lent = state.identity().lent(run.tenant, person).await?;
    let own = Right { of: None, roles: caller.roles, groups: &caller.groups, lent_by_another: None };
    let mut rights: Vec<Right<'_>> = Vec::new();
    if caller.may(Permission::Vote) {
        rights.push(own);
    }
    for LentRight { of, made_by, made_at } in &lent.by {
        let by_another = *made_by != of.name;
        // A person who may not decide must not lend out the right of others either, nor choose the second key.
        if by_another && (has_voted(run, made_by) || fresh::is_excluded(state, run, made_by).await?) {
            continue;
        }
        let lent_by_another = by_another.then(|| AccessChange { at: *made_at, by: made_by.clone() });
        rights.push(Right { of: Some(&of.name), roles: of.roles, groups: &of.groups, lent_by_another });
    }
    let found = match claimed.on_behalf_of.as_deref() {
        Some(whose) if whose == person => rights.iter().find(|right| right.of.is_none()),
        Some(whose) => rights.iter().find(|right| right.of == Some(whose)),
        // Where none is enough the first says why.
        None => rights.iter().find(|right| right.fits(question.approvers)).or_else(|| rights.first()),
    };
    let right = found.ok_or_else(|| match claimed.on_behalf_of.as_deref() {
        Some(whose) => not_in_force(whose),
        None => no_right(),
    })?;
    right.check_role(claimed.role.as_deref())?;
    if question.is_one_of_two() && has_lent_out(state, run, person).await? {
        let detail = "two people must agree here, and one has voted in a right that you have lent out in its holder's \
                      name; another person decides";
        return Err(ApiError::new(StatusCode::CONFLICT, "APPROVAL_VOTE_REFUSED", detail));
    }
    let matter = fresh::Matter::of_run(state, run, question.is_one_of_two()).await?;
    for name in right.of.into_iter().chain([person]) {
        matter.check(state, name).await?;
    }
    if let (Some(lender), Some(made)) = (right.of, &right.lent_by_another) {
        matter.check_lent(state, person, lender, made.clone()).await?;
    }
    let vote = fresh::LinkedVote { of_two: question.quorum > 1, approve: question.approve };
    fresh::check_link(state, caller, run, vote).await?;
    let settings = state.for_tenant(run.tenant).tenant().await?.map(|tenant| tenant.settings).unwrap_or_default();
    let weighed = weighed(state, run).await?;
    let own = AccountRights { name: person.to_owned(), roles: caller.roles, groups: caller.groups.to_vec() };
    let of = |whose: &str| AccountRights { name: whose.to_owned(), roles: right.roles, groups: right.groups.to_vec() };
    let mut accounts: Vec<AccountRights> = iter::once(own).chain(right.of.map(of)).collect();
    if question.approve {
        accounts.extend(weighed.accounts);
    }
    Ok(Voter {
        on_behalf_of: right.of.map(str::to_owned),
        self_approval: settings.self_approval,
        author: state.runs().version_author(run.tenant, run).await?,
        one_with: lent.one_with.clone(),
        fallen: weighed.fallen,
        accounts,
        ..Voter::new(person, right.groups.to_vec())
    })
}

/// The votes on what the run waits for, by what their people may do now.
async fn weighed(state: &AppState, run: &Run) -> Result<WeighedVotes, ApiError> {
    match &run.current().phase {
        Phase::WaitingApproval(open) => Ok(state.runs().weigh_votes(run.tenant, open).await?),
        _ => Ok(WeighedVotes::default()),
    }
}

/// Whether the person is one of those who have voted on what the run waits for.
fn has_voted(run: &Run, person: &str) -> bool {
    let Phase::WaitingApproval(open) = &run.current().phase else { return false };
    open.votes.iter().any(|vote| vote.person == person || vote.on_behalf_of.as_deref() == Some(person))
}

/// Whether a vote was cast in a right that the person has lent out in its holder's name: they would hold both keys.
async fn has_lent_out(state: &AppState, run: &Run, person: &str) -> Result<bool, ApiError> {
    let Phase::WaitingApproval(open) = &run.current().phase else { return Ok(false) };
    for vote in &open.votes {
        let Some(holder) = vote.on_behalf_of.as_deref().filter(|holder| *holder != person) else { continue };
        let lent = state.identity().lent(run.tenant, &vote.person).await?;
        if lent.by.iter().any(|right| right.of.name == holder && right.made_by == person) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn no_right() -> ApiError {
    let detail = "deciding needs the role `approver`, or a delegation from a person who has it (`GET /delegations`)";
    ApiError::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", detail)
}

fn not_in_force(whose: &str) -> ApiError {
    let named: String = whose.chars().take(80).collect();
    let detail = format!("{named} has not lent you a right to decide that holds now (`GET /delegations`)");
    ApiError::new(StatusCode::CONFLICT, "DELEGATION_NOT_IN_FORCE", detail)
}
