//! What a caller can say to a run.

use super::super::case::{Case, cancel, json, pause, reassign, retry, roll_back};
use super::people::Caller;
use crate::decide::Command;
use crate::machine::step::Resolution;
use crate::run::change::Context;
use crate::state::Initiator;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Skip,
    Retry,
    RetryChanged,
    Reassign,
    RestartFrom(u32),
    Happened,
    HappenedWithOutput,
    DidNotHappen,
    ResolveFailed,
    Rollback,
    Cancel,
    CancelAndRollback,
    Pause,
    Resume,
    Approve,
    Reject,
}

const FIXED: [Verb; 15] = [
    Verb::Skip,
    Verb::Retry,
    Verb::RetryChanged,
    Verb::Reassign,
    Verb::Happened,
    Verb::HappenedWithOutput,
    Verb::DidNotHappen,
    Verb::ResolveFailed,
    Verb::Rollback,
    Verb::Cancel,
    Verb::CancelAndRollback,
    Verb::Pause,
    Verb::Resume,
    Verb::Approve,
    Verb::Reject,
];

impl Verb {
    /// What a caller says: every verb, with a restart at each step up to the current one.
    pub fn all(case: &Case, caller: Caller) -> impl Iterator<Item = Self> + use<> {
        let restarts = (0..=case.run.position).map(Self::RestartFrom);
        let is_vote = |verb: &Self| matches!(verb, Self::Skip | Self::Approve | Self::Reject);
        FIXED.into_iter().chain(restarts).filter(move |verb| !caller.is_only_voter() || is_vote(verb))
    }

    /// What the caller says with it, and as whom; nothing where a caller without a vote would cast one.
    pub fn said_by(self, caller: Caller, case: &Case) -> Option<(Command, Context)> {
        let operator = caller.context(Initiator::Operator);
        let command = match self {
            Self::Skip => Command::Skip { reason: "done by hand".into(), voter: caller.voter().map(Box::new) },
            Self::Retry => retry(),
            Self::RetryChanged => change_input(),
            Self::Reassign => reassign(),
            Self::RestartFrom(position) => Command::RestartFrom { position },
            Self::Happened => resolve(case, Resolution::Happened, false),
            Self::HappenedWithOutput => resolve(case, Resolution::Happened, true),
            Self::DidNotHappen => resolve(case, Resolution::DidNotHappen, false),
            Self::ResolveFailed => resolve(case, Resolution::Failed, false),
            Self::Rollback => roll_back(),
            Self::Cancel => cancel(false),
            Self::CancelAndRollback => cancel(true),
            Self::Pause => pause(),
            Self::Resume => Command::Resume,
            Self::Approve | Self::Reject => {
                let (position, voter, approve) = (case.run.position, caller.voter()?, self == Self::Approve);
                let vote = Command::Vote { position, voter, approve, notes: None };
                return Some((vote, caller.context(Initiator::Approval)));
            }
        };
        Some((command, operator))
    }
}

pub fn change_input() -> Command {
    Command::Retry { input: Some(json(r#"{"target":"elsewhere"}"#)) }
}

pub fn resolve(case: &Case, resolution: Resolution, with_output: bool) -> Command {
    let output = with_output.then(|| json(r#"{"told":true}"#));
    Command::Resolve { position: case.run.position, resolution, output, reason: "looked".into() }
}
