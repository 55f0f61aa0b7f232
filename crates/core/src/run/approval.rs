//! Approvals and votes. A decision is made by people only; one eligible reject rejects; a quorum of different
//! people approves. The function [`Approval::vote`] is the only way a vote counts, whatever path it came by.

use std::fmt;
use std::iter;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{ApprovalId, KeyId};
use crate::json::Json;
use crate::limits;
use crate::machine::approval::{ApprovalEvent, next};
use crate::plan::tier::Tier;
use crate::plan::{Gate, OnDenial, Plan, Work};
use crate::rejection::Rejection;
use crate::run::card::ActionCard;
use crate::run::{Agreed, Foreseen};
use crate::state::{ApprovalState, UnknownName, names};
use crate::tenant::identity::Roles;
use crate::time::Timestamp;

names!(
    /// What an approval permits.
    Purpose, "purpose of an approval", {
        /// To pass a gate, or to carry out an action.
        Gate = "gate",
        /// To run a guarded step once more, possibly with another input.
        Retry = "retry",
        /// To go on without the step, although its approval was not given.
        Skip = "skip",
    }
);

impl Purpose {
    pub(crate) const fn gate() -> Self {
        Self::Gate
    }

    pub const fn is_gate(&self) -> bool {
        matches!(self, Self::Gate)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub state: ApprovalState,
    #[serde(default = "Purpose::gate", skip_serializing_if = "Purpose::is_gate")]
    pub purpose: Purpose,
    /// Why the operator who asked for the directive wants it; a gate has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub quorum: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub on_reject: OnDenial,
    pub on_expiry: OnDenial,
    pub requested_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate_at: Option<Timestamp>,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// Votes that were cast and count no more; none of them stands among the votes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallen: Vec<FallenVote>,
    /// People who may not decide: who started the run or owns the key that did, and who directed it to ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
    /// The effect of a running step that it is about; a gate and a directive are about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Agreed>,
    /// Later steps of the phase that are agreed to along with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Agreed>,
    /// What the steps behind a gate are about to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<Foreseen>,
    /// What exactly is approved; of a gate of the workflow, what it guards. Leave to skip a step is about no action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Box<ActionCard>>,
    /// The author of the workflow version may not decide; where two people are asked, the author may not anyway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excludes_author: bool,
    /// No excluded person decides, whatever the tenant says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forbids_self: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub and_from: Vec<Others>,
    /// How much it lets happen, as the policy said that asked for it; see [`Approval::tier_in`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
}

/// Terms that an approval has met. What demands more than they did is asked for anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    #[serde(default)]
    pub quorum: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excludes_author: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forbids_self: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub and_from: Vec<Others>,
}

impl Met {
    pub fn by(approval: &Approval) -> Self {
        let Approval { quorum, approvers, excludes_author, forbids_self, and_from, .. } = approval.clone();
        Self { quorum, approvers, excludes_author, forbids_self, and_from }
    }

    /// Whether nothing more is demanded: no more people, of no other groups, and no further exclusions.
    pub fn covers(&self, terms: &Terms) -> bool {
        let wanted = Others { quorum: terms.gate.quorum, approvers: terms.gate.approvers.clone() };
        let own = Others { quorum: self.quorum, approvers: self.approvers.clone() };
        let asked = |wanted: &Others| std::iter::once(&own).chain(&self.and_from).any(|asked| asked.covers(wanted));
        // One person may be of two lists; only a number above one means several people.
        let several = self.quorum > 1;
        asked(&wanted)
            && terms.and_from.iter().all(asked)
            && (self.excludes_author || several || !terms.excludes_author)
            && (self.forbids_self || several || !terms.forbids_self)
    }
}

/// People who must agree as well: so many of these groups, or of all approvers where there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Others {
    pub quorum: u32,
    pub approvers: Vec<String>,
}

impl Others {
    /// Whether these people, as they were asked, also meet what `wanted` asks for.
    fn covers(&self, wanted: &Self) -> bool {
        let within = !self.approvers.is_empty() && self.approvers.iter().all(|group| wanted.approvers.contains(group));
        self.quorum >= wanted.quorum && (wanted.approvers.is_empty() || within)
    }

    /// Whether enough of these people have agreed.
    fn have_agreed(&self, votes: &[Vote]) -> bool {
        votes.iter().filter(|vote| vote.approve && is_of(&self.approvers, &vote.groups)).count() >= self.quorum as usize
    }
}

/// Whether a name among those who may not decide is a person's. A key that no person owns stands there by its id, as the
/// maker of the key that has started the run; it decides nowhere.
pub fn is_person(name: &str) -> bool {
    name.parse::<KeyId>().is_err()
}

/// Whether a person of these `groups` may decide where the groups `approvers` are asked.
fn is_of(approvers: &[String], groups: &[String]) -> bool {
    approvers.is_empty() || approvers.iter().any(|group| groups.contains(group))
}

/// Whom a decision has asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub gate: Gate,
    pub and_from: Vec<Others>,
    /// The author of the workflow version does not decide, however few are asked.
    pub excludes_author: bool,
    /// No person approves what they started, whatever the tenant says.
    pub forbids_self: bool,
    /// How much is let happen, in the policy's words.
    pub tier: Option<Tier>,
}

impl Terms {
    /// The same, and no weaker than others: as many people, of the same groups, and no person whom the others exclude.
    /// Where each names groups, the people of both are needed.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        let Gate { quorum, approvers, .. } = &others.gate;
        if self.gate.approvers.is_empty() || approvers.is_empty() || self.gate.approvers == *approvers {
            self.gate.quorum = self.gate.quorum.max(*quorum);
            if self.gate.approvers.is_empty() {
                self.gate.approvers.clone_from(approvers);
            }
        } else {
            let mut others = Others { quorum: *quorum, approvers: approvers.clone() };
            // The larger quorum stands in front: the rules for several people look at it.
            if others.quorum > self.gate.quorum {
                std::mem::swap(&mut self.gate.quorum, &mut others.quorum);
                std::mem::swap(&mut self.gate.approvers, &mut others.approvers);
            }
            self.and_from.push(others);
        }
        self.and_from.extend(others.and_from.iter().cloned());
        self.excludes_author |= others.excludes_author;
        self.forbids_self |= others.forbids_self;
        self.tier = self.tier.max(others.tier);
        self
    }
}

impl From<Gate> for Terms {
    fn from(gate: Gate) -> Self {
        Self { gate, and_from: Vec::new(), excludes_author: false, forbids_self: false, tier: None }
    }
}

/// One person's vote on an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Vote {
    pub person: String,
    /// Whose right to decide the person used, where it was not their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    pub approve: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    pub at: Timestamp,
    /// Of which of the groups that are asked the person was, where people of several are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl Vote {
    /// Whether the person cast it, or lent the right to.
    fn is_of(&self, person: &str) -> bool {
        self.person == person || self.on_behalf_of.as_deref() == Some(person)
    }
}

/// A yes that counts no more, because its voter lost the right to decide before enough others had agreed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FallenVote {
    /// Who cast it.
    pub person: String,
    /// What took the right away, such as `the account bo is disabled`.
    pub why: String,
}

/// An earlier vote that is not to count any more, exactly as it was cast: one that its person has cast anew meanwhile counts.
#[derive(Debug, Clone, PartialEq)]
pub struct VoteToDrop {
    pub vote: Vote,
    pub why: String,
}

/// What an account may do, as it was read when a vote was weighed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRights {
    pub name: String,
    pub roles: Roles,
    pub groups: Vec<String>,
}

/// Who is voting, with what the server knows about the person.
#[derive(Debug, Clone)]
pub struct Voter {
    pub person: String,
    /// Whose right to decide is used, where it is not the person's own: the one who has delegated it.
    pub on_behalf_of: Option<String>,
    /// Whom the person counts as one with: those who have delegated to them, and those to whom they have.
    pub one_with: Vec<String>,
    /// The groups of the person whose right it is.
    pub groups: Vec<String>,
    /// The tenant lets people approve what they started (`approval.self`).
    pub self_approval: bool,
    /// Who wrote the version of the workflow that the run has pinned.
    pub author: Option<String>,
    /// Earlier votes of people who have no right to decide any more.
    pub fallen: Vec<VoteToDrop>,
    /// The accounts that this vote rests on, and a yes also those of the earlier ones that it counts with: it is committed
    /// only while they are as they were read.
    pub accounts: Vec<AccountRights>,
}

impl Voter {
    /// A person who votes in their own right, and of whom nothing else is known.
    pub fn new(person: impl Into<String>, groups: Vec<String>) -> Self {
        Self {
            person: person.into(),
            on_behalf_of: None,
            one_with: Vec::new(),
            groups,
            self_approval: false,
            author: None,
            fallen: Vec::new(),
            accounts: Vec::new(),
        }
    }

    /// Whether every earlier yes was weighed. One that came meanwhile rests on accounts that nobody has read. A voter of whom no
    /// account was read ([`Voter::new`]) rests on none; a server always reads the voter's own.
    pub fn has_weighed(&self, open: &Approval) -> bool {
        let is_read = |name: &str| self.accounts.iter().any(|account| account.name == name);
        let fell = |vote: &Vote| self.fallen.iter().any(|fell| fell.vote == *vote);
        let rests = |vote: &Vote| is_read(&vote.person) && vote.on_behalf_of.as_deref().is_none_or(is_read);
        self.accounts.is_empty() || open.votes.iter().filter(|vote| vote.approve).all(|vote| fell(vote) || rests(vote))
    }

    /// The person, and all who count as one with them.
    fn everybody(&self) -> impl Iterator<Item = &String> {
        iter::once(&self.person).chain(&self.on_behalf_of).chain(&self.one_with)
    }

    /// How a message names the person `as_whom`, whom this voter counts as one with.
    fn named(&self, as_whom: &str) -> String {
        if self.person == as_whom {
            return as_whom.to_owned();
        }
        format!("{} counts as one with {as_whom}, because one has delegated to the other: {as_whom}", self.person)
    }
}

impl Approval {
    /// The same, for what a decision demands beyond a gate.
    #[must_use]
    pub fn on(mut self, terms: &Terms) -> Self {
        self.and_from.clone_from(&terms.and_from);
        for others in &terms.and_from {
            let also = format!("Needs {} of {} as well.", others.quorum, others.approvers.join(", "));
            self.message = Some(self.message.map_or(also.clone(), |message| format!("{message}\n{also}")));
        }
        self.excludes_author = terms.excludes_author;
        self.forbids_self = terms.forbids_self;
        self.tier = terms.tier;
        self
    }

    /// The tier of a question that is asked at `position`: what the policy has said where it asks, what stands behind it where
    /// it is a gate of the workflow, and the higher one where it is both. Two keys are high.
    pub fn tier_in(&self, plan: &Plan, position: u32) -> Tier {
        let is_gate = plan.step(position).is_some_and(|step| matches!(step.work, Work::Approval(_)));
        match self.tier {
            _ if self.quorum > 1 || !self.and_from.is_empty() => Tier::High,
            Some(tier) if is_gate => tier.max(plan.tier(position)),
            Some(tier) => tier,
            None => plan.tier(position),
        }
    }

    /// Whether people who started or directed the run may decide all the same. `tenant_allows` is the setting of the tenant;
    /// in production, where two people are asked, and where the policy forbids it, it does not count.
    pub fn allows_self(&self, plan: &Plan, tenant_allows: bool) -> bool {
        tenant_allows && !plan.rules.is_prod() && !self.forbids_self && self.quorum <= 1
    }

    /// The groups whose people may decide, of every list that is asked; none where any person may.
    pub fn asked_groups(&self) -> Vec<String> {
        let lists = || iter::once(&self.approvers).chain(self.and_from.iter().map(|others| &others.approvers));
        if lists().any(Vec::is_empty) { Vec::new() } else { lists().flatten().cloned().collect() }
    }

    /// The approval after this vote, with its new state. One person has one vote, and so have two of whom one has
    /// delegated to the other. An earlier yes counts only while its voter could still give it.
    pub fn vote(&self, voter: &Voter, vote: Vote) -> Result<Self, Rejection> {
        let refuse = |why: String| Err(Rejection::VoteRefused { approval: self.id, why });
        if self.state != ApprovalState::Requested {
            return refuse(format!("it is {} already", self.state));
        }
        let mut after = self.clone();
        // A no drops only what stands in its own way.
        let is_in_the_way = |fell: &&VoteToDrop| vote.approve || voter.everybody().any(|whose| fell.vote.is_of(whose));
        let in_the_way: Vec<VoteToDrop> = voter.fallen.iter().filter(is_in_the_way).cloned().collect();
        after.drop_fallen(&in_the_way);
        let cast = |whose: &&String| after.votes.iter().any(|earlier| earlier.is_of(whose));
        if let Some(whose) = voter.everybody().find(cast) {
            let approved = after.votes.iter().any(|earlier| earlier.is_of(whose) && earlier.approve);
            let word = if approved { "approved" } else { "rejected" };
            return refuse(format!("{} has {word} it already; a person has one vote", voter.named(whose)));
        }
        let excluded = voter.everybody().find(|whose| self.excluded.contains(whose));
        if let Some(whose) = excluded.filter(|_| !voter.self_approval || self.forbids_self || self.quorum > 1) {
            return refuse(format!("{} started or directed this run and may not decide on it", voter.named(whose)));
        }
        let author = voter.everybody().find(|whose| voter.author.as_ref() == Some(*whose));
        if let Some(whose) = author.filter(|_| self.excludes_author || self.quorum > 1) {
            let who = voter.named(whose);
            return refuse(format!("{who} wrote this version of the workflow, and others must decide on it"));
        }
        let asked = || iter::once(&self.approvers).chain(self.and_from.iter().map(|others| &others.approvers));
        if !asked().any(|groups| is_of(groups, &voter.groups)) {
            let whose = voter.on_behalf_of.as_ref().unwrap_or(&voter.person);
            let groups: Vec<&str> = asked().flatten().map(String::as_str).collect();
            return refuse(format!("{whose} is in none of the groups {}", groups.join(", ")));
        }
        // Each by itself, so that votes that fell do not keep a quorum from being reached; and a no ends the approval.
        let is_full = after.votes.len().max(after.fallen.len()) >= limits::VOTES_PER_APPROVAL_MAX;
        if vote.approve && is_full {
            return refuse("it has reached the limit of votes".into());
        }
        let approve = vote.approve;
        // Where people of several lists are needed, it counts in which of them the voter is.
        let groups =
            voter.groups.iter().filter(|group| !self.and_from.is_empty() && asked().flatten().any(|of| of == *group));
        after.votes.push(Vote { groups: groups.cloned().collect(), ..vote });
        let quorum = || after.has_quorum().then_some(ApprovalEvent::QuorumReached);
        let event = if approve { quorum() } else { Some(ApprovalEvent::Rejected) };
        if let Some(event) = event {
            after.state = next(after.state, event).expect("a requested approval takes every event");
        }
        Ok(after)
    }

    /// Takes the votes away that count no more.
    fn drop_fallen(&mut self, fallen: &[VoteToDrop]) {
        for VoteToDrop { vote, why } in fallen {
            if self.votes.contains(vote) {
                self.votes.retain(|cast| cast != vote);
                self.fallen.push(FallenVote { person: vote.person.clone(), why: why.clone() });
            }
        }
    }

    /// The votes that count no more, of people who have not voted anew.
    pub fn missing_votes(&self) -> Vec<FallenVote> {
        let has_voted_anew = |fell: &&FallenVote| self.votes.iter().any(|vote| vote.person == fell.person);
        self.fallen.iter().filter(|fell| !has_voted_anew(fell)).cloned().collect()
    }

    /// The votes that count no more since the approval was as in `before`.
    pub fn fallen_since(&self, before: &Self) -> Vec<FallenVote> {
        self.fallen.get(before.fallen.len()..).unwrap_or_default().to_vec()
    }

    fn has_quorum(&self) -> bool {
        if self.and_from.is_empty() {
            return self.approved_by().len() >= self.quorum as usize;
        }
        let own = Others { quorum: self.quorum, approvers: self.approvers.clone() };
        std::iter::once(&own).chain(&self.and_from).all(|asked| asked.have_agreed(&self.votes))
    }

    /// Who has approved so far, in the order of their votes.
    pub fn approved_by(&self) -> Vec<&str> {
        self.votes.iter().filter(|vote| vote.approve).map(|vote| vote.person.as_str()).collect()
    }

    /// What an approved gate leaves behind for later steps: who approved.
    pub fn output(&self) -> Json {
        Json::trusted(serde_json::json!({ "approval": self.id, "approved_by": self.approved_by() }).to_string())
    }

    /// Moves along an arrow of the machine; staying where it is if the arrow does not exist.
    pub fn closed_by(&self, event: ApprovalEvent) -> Self {
        let mut after = self.clone();
        after.state = next(after.state, event).unwrap_or(after.state);
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{BlastRadius, StepSpec};

    #[test]
    fn a_gate_does_not_weaken_what_a_policy_demands() {
        let gate = |quorum: u32, approvers: &[&str]| -> Terms {
            let gate = serde_json::json!({ "quorum": quorum, "approvers": approvers });
            serde_json::from_value::<Gate>(gate).unwrap().into()
        };
        let policy = Terms { excludes_author: true, forbids_self: true, ..gate(2, &[]) };
        let both = policy.clone().and(&gate(1, &["sre"]));
        assert_eq!((both.gate.quorum, both.gate.approvers.as_slice()), (2, ["sre".to_owned()].as_slice()));
        assert!(both.excludes_author && both.forbids_self);
        assert_eq!(gate(1, &["sre"]).and(&policy).gate.quorum, 2);
        let dba = gate(1, &["dba"]).and(&gate(1, &["sre"]));
        let sre = Others { quorum: 1, approvers: vec!["sre".to_owned()] };
        assert_eq!(
            (dba.gate.approvers, dba.and_from),
            (vec!["dba".to_owned()], vec![sre]),
            "people of both are needed"
        );
        let two = gate(1, &["dba"]).and(&gate(2, &["sre"]));
        assert_eq!((two.gate.quorum, two.gate.approvers.as_slice()), (2, ["sre".to_owned()].as_slice()));
        assert_eq!(two.and_from, [Others { quorum: 1, approvers: vec!["dba".to_owned()] }]);
    }

    #[test]
    fn what_was_agreed_to_counts_for_what_demands_no_more() {
        let terms = |quorum: u32, approvers: &[&str]| -> Terms {
            let gate = serde_json::json!({ "quorum": quorum, "approvers": approvers });
            serde_json::from_value::<Gate>(gate).unwrap().into()
        };
        let met = |quorum, approvers: &[&str]| Met {
            quorum,
            approvers: approvers.iter().map(|group| (*group).to_owned()).collect(),
            ..Met::default()
        };
        assert!(met(1, &["sre"]).covers(&terms(1, &["sre", "dba"])), "fewer groups were asked");
        assert!(met(2, &[]).covers(&terms(1, &[])));
        assert!(!met(1, &["sre"]).covers(&terms(2, &["sre"])), "two are wanted by now");
        assert!(!met(1, &[]).covers(&terms(1, &["sre"])), "people of every group were asked");
        assert!(!met(1, &["sre", "dba"]).covers(&terms(1, &["sre"])), "it may have been a person of the other group");
        assert!(!Met::default().covers(&terms(1, &[])), "what was agreed to before this was kept");
        let strict = Terms { excludes_author: true, forbids_self: true, ..terms(1, &[]) };
        assert!(!met(1, &[]).covers(&strict));
        assert!(met(2, &[]).covers(&strict), "where two are asked, neither may anyway");
        let of_both = Met { and_from: vec![Others { quorum: 1, approvers: vec!["dba".into()] }], ..met(1, &["sre"]) };
        assert!(!of_both.covers(&strict), "it may have been one person of both groups");
    }

    #[test]
    fn people_of_every_list_that_is_asked_may_decide() {
        let asked = |approvers: &[&str], and_from: &[&str]| -> Approval {
            serde_json::from_value(serde_json::json!({
                "id": ApprovalId::from_bytes([1; 16]), "state": "requested", "quorum": 1, "on_reject": "fail",
                "on_expiry": "fail", "requested_at": 0, "expires_at": 1, "approvers": approvers,
                "and_from": [{ "quorum": 1, "approvers": and_from }],
            }))
            .unwrap()
        };
        assert_eq!(asked(&["sre"], &["dba"]).asked_groups(), ["sre", "dba"]);
        assert!(asked(&["sre"], &[]).asked_groups().is_empty(), "any person may, for the second list");
    }

    #[test]
    fn what_the_policy_asks_has_the_tier_that_it_names() {
        let asked = |quorum: u32, tier: Option<Tier>| -> Approval {
            serde_json::from_value(serde_json::json!({
                "id": ApprovalId::from_bytes([1; 16]), "state": "requested", "quorum": quorum, "on_reject": "fail",
                "on_expiry": "fail", "requested_at": 0, "expires_at": 1, "tier": tier,
            }))
            .unwrap()
        };
        let task = Plan::new("demo", vec![StepSpec::task("t", "t")]);
        assert_eq!(asked(1, Some(Tier::Low)).tier_in(&task, 0), Tier::Low);
        assert_eq!(asked(2, Some(Tier::Low)).tier_in(&task, 0), Tier::High, "two keys");
        assert_eq!(asked(1, None).tier_in(&task, 0), Tier::High, "no policy has said");
        let far = StepSpec { blast_radius: Some(BlastRadius::High), ..StepSpec::task("t", "t") };
        let gate = Work::Approval(serde_json::from_value(serde_json::json!({})).unwrap());
        let gated = Plan::new("demo", vec![StepSpec::new("gate", gate), far]);
        assert_eq!(asked(1, Some(Tier::Low)).tier_in(&gated, 0), Tier::High, "what stands behind it counts");
    }
}
