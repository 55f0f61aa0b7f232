//! Accounts of an excluded person's making. An excluded person must not make an approver of their own: an account that
//! they have made, given its rights or let in within the last day does not vote there, nor one that such an
//! account, or a key of theirs, has made or changed in turn. Who stands behind a key without an owner is not known, so an
//! account that such a key has made or changed since the run was started does not vote there either.
//!
//! Where two must agree, an account whose access was changed within the last day is not one of them. In the first
//! day of a tenant there are no others, so what was set up then counts.
//!
//! A delegation that an admin has made in the name of another person gives the delegate a right, as a change of their
//! account would, and is looked at in the same way.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use interlock_core::ids::{KeyId, TenantId};
use interlock_core::run::Run;
use interlock_core::run::change::key_in_words;
use interlock_core::time::Timestamp;

use super::access::{AccessChange, FRESH, HANDS_MAX, changed_lately};
use super::{Caller, Via};
use crate::api_error::ApiError;
use crate::state::AppState;

/// A decision in which an account wants to vote.
pub struct Matter {
    pub tenant: TenantId,
    /// Who may not decide.
    pub excluded: BTreeSet<String>,
    /// When it came up.
    pub since: Timestamp,
    /// Two must agree, and this is the vote of one of them.
    pub one_of_two: bool,
}

impl Matter {
    pub async fn of_run(state: &AppState, run: &Run, one_of_two: bool) -> Result<Self, ApiError> {
        let excluded = excluded(state, run).await?;
        Ok(Self { tenant: run.tenant, excluded, since: run.header.created_at, one_of_two })
    }

    /// Refuses the vote of an account that has just been made or changed, by whichever route it comes.
    pub async fn check(&self, state: &AppState, name: &str) -> Result<(), ApiError> {
        let Some(user) = state.for_tenant(self.tenant).user_named(name).await? else { return Ok(()) };
        let changes = changed_lately(&user, state.now());
        let Some(last) = changes.iter().map(|change| change.at).max() else { return Ok(()) };
        if self.one_of_two && last >= settled_from(state, self.tenant).await? {
            return Err(refused(format!(
                "two people must agree here, and the access of the account `{name}` was changed within the last day; \
                 another person decides, or this account does a day later"
            )));
        }
        let account = Touched {
            by_whom: name,
            what: format!("the account `{name}` within the last day"),
            advice: "another person decides, or this account does a day later",
        };
        self.check_hands(state, &account, changes).await
    }

    /// Refuses a vote in the right of `lender` where another person has lent it to the voter, and that was a moment ago or
    /// the doing of a person who may not decide.
    pub async fn check_lent(
        &self,
        state: &AppState,
        person: &str,
        lender: &str,
        made: AccessChange,
    ) -> Result<(), ApiError> {
        let fresh = state.now().since(made.at) < FRESH;
        if self.one_of_two && fresh && made.at >= settled_from(state, self.tenant).await? {
            return Err(refused(format!(
                "two people must agree here, and {lender} has not lent out this right to decide: another admin has, within \
                 the last day; {lender} or another person decides, or you do a day later"
            )));
        }
        let lending = Touched {
            by_whom: person,
            what: format!("lending out the right of {lender}"),
            advice: "another person decides",
        };
        self.check_hands(state, &lending, vec![made]).await
    }

    /// Follows who has had a hand in something.
    async fn check_hands(
        &self,
        state: &AppState,
        touched: &Touched<'_>,
        changes: Vec<AccessChange>,
    ) -> Result<(), ApiError> {
        let store = state.for_tenant(self.tenant);
        let Touched { by_whom, what, advice } = touched;
        let mut followed: BTreeSet<String> = BTreeSet::from([(*by_whom).to_owned()]);
        let mut open = changes;
        while let Some(AccessChange { at, by }) = open.pop() {
            if !followed.insert(by.clone()) {
                continue;
            }
            if followed.len() > HANDS_MAX {
                let detail = format!("more than {HANDS_MAX} others have had a hand in {what}; {advice}");
                return Err(refused(detail));
            }
            if self.excluded.contains(&by) {
                let detail = format!("{by} may not decide here, and has had a hand in {what}; {advice}");
                return Err(refused(detail));
            }
            if let Ok(key) = by.parse::<KeyId>() {
                let row = store.key(key).await?;
                if at > self.since {
                    let key = row.map_or_else(|| format!("key {by}"), |row| key_in_words(&row.name, None));
                    return Err(refused(format!(
                        "the {key} has had a hand in {what}, after this came up, and has no owner who answers for it; \
                         {advice}"
                    )));
                }
                let maker = row.and_then(|key| key.created_by);
                open.extend(maker.map(|by| AccessChange { at, by }));
            } else if let Some(user) = store.user_named(&by).await? {
                open.extend(changed_lately(&user, state.now()));
            }
        }
        Ok(())
    }
}

/// What others may have had a hand in, and so in a vote.
struct Touched<'a> {
    /// Whose vote it is: their own hand does not count.
    by_whom: &'a str,
    what: String,
    /// What to do instead.
    advice: &'static str,
}

/// Refuses a vote that comes by way of Slack where the link or the signing secret is too new to be the second key, or
/// comes from a person who may not decide: the maker of a link, or of the secret with which Slack signs, could vote as
/// others.
pub async fn check_link(state: &AppState, caller: &Caller, run: &Run, vote: LinkedVote) -> Result<(), ApiError> {
    let Via::Slack { proof, .. } = &caller.via else { return Ok(()) };
    let (person, now) = (caller.as_voter()?, state.now());
    let matter = Matter::of_run(state, run, vote.of_two).await?;
    let ways = [
        ("your Slack account was linked", proof.linked_at, Some(proof.linked_by.as_str())),
        (
            "this tenant's connection to Slack was set up or given another secret",
            proof.secret_at,
            proof.secret_by.as_deref(),
        ),
    ];
    for (what, at, by) in ways {
        let fresh = now.since(at) < FRESH;
        if vote.of_two && vote.approve && fresh {
            let detail = format!("two people must agree here, and {what} within the last day: approve in the console");
            return Err(refused(detail));
        }
        let Some(by) = by.filter(|by| *by != person && (vote.of_two || fresh)) else { continue };
        let unknown = by.parse::<KeyId>().is_ok() && at > run.header.created_at;
        let behind = makers(state, run.tenant, by).await?;
        if unknown || behind.iter().any(|name| matter.excluded.contains(name)) {
            return Err(refused(format!("{by} may not decide here, and by {by} {what}: decide in the console")));
        }
        if fresh {
            let what = "the way by which this comes from Slack".to_owned();
            let way = Touched { by_whom: person, what, advice: "decide in the console" };
            matter.check_hands(state, &way, vec![AccessChange { at, by: by.to_owned() }]).await?;
        }
    }
    Ok(())
}

/// A vote that may have come by way of Slack.
#[derive(Debug, Clone, Copy)]
pub struct LinkedVote {
    /// Two must agree.
    pub of_two: bool,
    pub approve: bool,
}

/// Whether this person may not decide on a run: they started it, directed it so that it asks, or wrote its workflow.
pub async fn is_excluded(state: &AppState, run: &Run, person: &str) -> Result<bool, ApiError> {
    Ok(excluded(state, run).await?.contains(person))
}

async fn excluded(state: &AppState, run: &Run) -> Result<BTreeSet<String>, ApiError> {
    let author = state.runs().version_author(run.tenant, run).await?;
    let approvals = state.for_tenant(run.tenant).approvals_of(run.id).await?;
    let mut excluded: BTreeSet<String> = approvals.into_iter().flat_map(|row| row.excluded).collect();
    excluded.extend(run.header.started_by.clone());
    excluded.extend(run.notes.starters.iter().cloned());
    excluded.extend(author);
    Ok(excluded)
}

/// The name itself, and where it is a key's, who has made the key, and so has seen it.
async fn makers(state: &AppState, tenant: TenantId, by: &str) -> Result<Vec<String>, ApiError> {
    let store = state.for_tenant(tenant);
    let mut found = vec![by.to_owned()];
    while let Some(Ok(key)) = found.last().map(|name| name.parse::<KeyId>()) {
        let maker = store.key(key).await?.and_then(|row| row.created_by);
        match maker {
            Some(maker) if found.len() <= HANDS_MAX && !found.contains(&maker) => found.push(maker),
            _ => break,
        }
    }
    Ok(found)
}

/// From when on a change of access counts, no matter which person has made it.
async fn settled_from(state: &AppState, tenant: TenantId) -> Result<Timestamp, ApiError> {
    let tenant = state.for_tenant(tenant).tenant().await?;
    Ok(tenant.map_or(Timestamp(i64::MIN), |tenant| tenant.created_at + FRESH))
}

fn refused(detail: String) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "APPROVAL_VOTE_REFUSED", detail)
}
