//! Who calls, and who votes.

use super::super::case::STARTER;
use crate::run::approval::Voter;
use crate::run::change::Context;
use crate::state::Initiator;

/// The group that every gate of the matrix asks, and the one that the policy asks.
pub const GATE_GROUP: &str = "sre";
pub const POLICY_GROUP: &str = "dba";

pub const DIRECTOR: &str = "dan";
pub const KEY_MAKER: &str = "kim";

/// All people who may try to vote, those with the weakest claim first.
pub const PEOPLE: [(&str, &[&str]); 10] = [
    (STARTER, &[GATE_GROUP, POLICY_GROUP]),
    ("nina", &[]),
    ("otto", &[POLICY_GROUP]),
    ("olga", &[POLICY_GROUP]),
    ("ann", &[GATE_GROUP]),
    ("rob", &[GATE_GROUP]),
    ("sue", &[GATE_GROUP]),
    ("tim", &[GATE_GROUP]),
    (DIRECTOR, &[GATE_GROUP, POLICY_GROUP]),
    (KEY_MAKER, &[GATE_GROUP, POLICY_GROUP]),
];

/// The groups of a person; `None` for a name that is no person's.
pub fn groups_of(name: &str) -> Option<&'static [&'static str]> {
    PEOPLE.iter().find(|(person, _)| *person == name).map(|(_, groups)| *groups)
}

pub fn ballot(name: &str) -> Voter {
    let groups = groups_of(name).unwrap_or_default();
    Voter::new(name, groups.iter().map(ToString::to_string).collect())
}

/// A directive by which a person has a say in what the run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    ChangedInput,
    Restarted,
    ToldOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Starter,
    /// Gave this directive before, at a step that no gate guards.
    Director(Directive),
    Approver,
    ApproverOfOthers,
    NoGroups,
    /// A key without an owner; who made it is known.
    Key,
    System,
}

impl Caller {
    /// Those who have not directed the run before.
    pub const UNDIRECTED: [Self; 6] =
        [Self::Starter, Self::Approver, Self::ApproverOfOthers, Self::NoGroups, Self::Key, Self::System];

    /// Directives differ in whom they exclude: where one of them has seen every verb, votes are enough for the others.
    pub const fn is_only_voter(self) -> bool {
        matches!(self, Self::Director(Directive::Restarted | Directive::ToldOutput))
    }

    const fn person(self) -> Option<&'static str> {
        match self {
            Self::Starter => Some(STARTER),
            Self::Director(_) => Some(DIRECTOR),
            Self::Approver => Some("ann"),
            Self::ApproverOfOthers => Some("otto"),
            Self::NoGroups => Some("nina"),
            Self::Key | Self::System => None,
        }
    }

    pub fn context(self, initiator: Initiator) -> Context {
        match (self, self.person()) {
            (_, Some(person)) => Context::of(initiator, person),
            (Self::Key, None) => Context { makers: vec![KEY_MAKER.into()], ..Context::by(Initiator::Operator) },
            (_, None) => Context::SYSTEM,
        }
    }

    /// Only people have a vote.
    pub fn voter(self) -> Option<Voter> {
        self.person().map(ballot)
    }
}
