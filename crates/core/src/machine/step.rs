//! The life of a step.
//!
//! | from | event | to |
//! |---|---|---|
//! | pending | Activated | ready, waiting_approval, waiting_signal, skipped, failed: by kind, condition and decision |
//! | ready | Claimed / GrantLapsed | running / waiting_approval |
//! | running | Succeeded, Failed, LeaseExpired, Released, NeedsApproval, Denied, Waiting, Timeout | see [`next`] |
//! | waiting_approval | Approved, Rejected, Expired | succeeded or ready, failed or stays |
//! | waiting_approval, failed | OperatorRetry, OperatorSkip, DirectiveAsked | ready or asked anew, skipped, waiting_approval |
//! | waiting_signal | Woken, TimedOut | ready (`wait`: succeeded / failed) |
//! | in_doubt | Resolved | succeeded, ready, failed |
//! | succeeded, failed, in_doubt | RollbackFinished | rolled_back |
//! | any unfinished | RunCanceled | canceled |

use crate::state::{StepKind, StepState, names};
use std::fmt;
use std::str::FromStr;

use crate::state::UnknownName;

names!(
    /// What activation found: the condition's value and the verdict on the bound action, made before `decide`.
    Verdict, "activation verdict", {
        Go = "go",
        NeedsApproval = "needs_approval",
        Denied = "denied",
        ConditionFalse = "condition_false",
    }
);

names!(
    /// What a probe or a person found out about an effect in doubt.
    Resolution, "resolution", {
        Happened = "happened",
        DidNotHappen = "did_not_happen",
        Failed = "failed",
    }
);

/// Everything that can happen to a step, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepEvent {
    Activated(Verdict),
    Claimed,
    GrantLapsed,
    Succeeded,
    /// Retryable and the budget allows it; `ask` where a retry needs a new approval.
    FailedRetryable {
        ask: bool,
    },
    /// A terminal error, or a retryable one with the budget spent; a step timeout ends here or above.
    FailedForGood,
    /// The worker was lost and the effect class allows another try.
    LeaseExpired,
    /// The worker was lost with the budget spent.
    LeaseExpiredForGood,
    /// The worker was lost after an unsafe effect's intent.
    LeaseExpiredInDoubt,
    /// Given back uncharged: drain, shutdown, a claim whose answer was lost.
    Released,
    NeedsApproval,
    Denied,
    Waiting,
    Approved,
    /// Rejected with `on_reject: fail`, or expired with `on_expiry: fail`.
    RejectedOrExpired,
    /// Rejected or expired with `pause`: the step stays, the run pauses.
    RejectedOrExpiredPausing,
    OperatorRetry {
        ask: bool,
    },
    OperatorSkip,
    /// A directive that needs votes has been asked for: the step waits for them, the run stays paused.
    DirectiveAsked,
    Woken,
    TimedOut,
    Resolved(Resolution),
    RunFailed,
    RunCanceled,
    RollbackFinished,
    /// Restart from an earlier step: this step will run again, in a new iteration.
    Rewound,
}

impl StepEvent {
    pub const ALL: &'static [Self] = &[
        Self::Activated(Verdict::Go),
        Self::Activated(Verdict::NeedsApproval),
        Self::Activated(Verdict::Denied),
        Self::Activated(Verdict::ConditionFalse),
        Self::Claimed,
        Self::GrantLapsed,
        Self::Succeeded,
        Self::FailedRetryable { ask: false },
        Self::FailedRetryable { ask: true },
        Self::FailedForGood,
        Self::LeaseExpired,
        Self::LeaseExpiredForGood,
        Self::LeaseExpiredInDoubt,
        Self::Released,
        Self::NeedsApproval,
        Self::Denied,
        Self::Waiting,
        Self::Approved,
        Self::RejectedOrExpired,
        Self::RejectedOrExpiredPausing,
        Self::OperatorRetry { ask: false },
        Self::OperatorRetry { ask: true },
        Self::OperatorSkip,
        Self::DirectiveAsked,
        Self::Woken,
        Self::TimedOut,
        Self::Resolved(Resolution::Happened),
        Self::Resolved(Resolution::DidNotHappen),
        Self::Resolved(Resolution::Failed),
        Self::RunFailed,
        Self::RunCanceled,
        Self::RollbackFinished,
        Self::Rewound,
    ];
}

impl StepEvent {
    /// What was tried, in the words of the API, for the message to the caller that it does not apply.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Activated(_) => "it cannot begin",
            Self::Claimed => "it cannot be claimed",
            Self::GrantLapsed => "its approval cannot lapse",
            Self::Succeeded => "it cannot be completed",
            Self::FailedRetryable { .. } | Self::FailedForGood => "it cannot fail",
            Self::LeaseExpired | Self::LeaseExpiredForGood | Self::LeaseExpiredInDoubt => "its worker cannot be lost",
            Self::Released => "it cannot be given back",
            Self::NeedsApproval | Self::DirectiveAsked => "no approval can be asked for",
            Self::Denied => "it cannot be denied",
            Self::Waiting => "it cannot wait for a signal",
            Self::Approved => "it cannot be approved",
            Self::RejectedOrExpired | Self::RejectedOrExpiredPausing => {
                "its approval can neither be rejected nor expire"
            }
            Self::OperatorRetry { .. } => "`retry` does not apply to it",
            Self::OperatorSkip => "`skip` does not apply to it",
            Self::Woken => "no signal can wake it",
            Self::TimedOut => "its wait cannot time out",
            Self::Resolved(_) => "`resolve` does not apply to it, since it is not in doubt",
            Self::RunFailed | Self::RunCanceled => "it cannot be canceled",
            Self::RollbackFinished => "it cannot be rolled back",
            Self::Rewound => "`restart` does not apply to it",
        }
    }
}

/// The names in the tables of [states](../../../../docs/reference/states.md), not for messages.
impl fmt::Display for StepEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Activated(verdict) => write!(f, "Activated({verdict})"),
            Self::FailedRetryable { ask: true } => f.write_str("FailedRetryable(ask)"),
            Self::FailedRetryable { ask: false } => f.write_str("FailedRetryable"),
            Self::OperatorRetry { ask: true } => f.write_str("OperatorRetry(ask)"),
            Self::OperatorRetry { ask: false } => f.write_str("OperatorRetry"),
            Self::Resolved(resolution) => write!(f, "Resolved({resolution})"),
            other => write!(f, "{other:?}"),
        }
    }
}

/// The whole machine. `None` means that the arrow does not exist.
#[expect(clippy::match_same_arms, reason = "one arm an arrow, by where it starts")]
pub const fn next(from: StepState, kind: StepKind, event: StepEvent) -> Option<StepState> {
    use StepEvent as E;
    use StepState as S;
    let governed = !matches!(kind, StepKind::Transform | StepKind::Approval | StepKind::Wait);
    let pure = matches!(kind, StepKind::Approval | StepKind::Wait);
    let forward = !matches!(kind, StepKind::Rollback);
    let gate = matches!(kind, StepKind::Approval);
    Some(match (from, event) {
        (S::Pending, E::Activated(Verdict::ConditionFalse)) => S::Skipped,
        (S::Pending, E::Activated(Verdict::NeedsApproval)) if governed => S::WaitingApproval,
        (S::Pending, E::Activated(Verdict::Denied)) if governed => S::Failed,
        (S::Pending, E::Activated(Verdict::Go)) => match kind {
            StepKind::Approval => S::WaitingApproval,
            StepKind::Wait => S::WaitingSignal,
            _ => S::Ready,
        },

        (S::Ready, E::Claimed) if !pure => S::Running,
        (S::Ready, E::GrantLapsed) if governed => S::WaitingApproval,

        (S::Running, E::Succeeded) => S::Succeeded,
        (S::Running, E::FailedRetryable { ask: false } | E::LeaseExpired | E::Released) => S::Ready,
        (S::Running, E::FailedRetryable { ask: true }) if governed => S::WaitingApproval,
        (S::Running, E::NeedsApproval) if governed => S::WaitingApproval,
        (S::Running, E::Denied) if governed => S::Failed,
        (S::Running, E::FailedForGood | E::LeaseExpiredForGood) => S::Failed,
        (S::Running, E::LeaseExpiredInDoubt) => S::InDoubt,
        (S::Running, E::Waiting) => S::WaitingSignal,

        (S::WaitingApproval, E::Approved) => match kind {
            StepKind::Approval => S::Succeeded,
            _ => S::Ready,
        },
        (S::WaitingApproval, E::RejectedOrExpired) => S::Failed,
        (S::WaitingApproval, E::RejectedOrExpiredPausing) => S::WaitingApproval,

        // The operator's directive on a paused run. A gate is asked anew, a wait is opened anew.
        (S::WaitingApproval, E::OperatorRetry { ask: false }) if gate => S::WaitingApproval,
        (S::Failed, E::OperatorRetry { ask: false }) => match kind {
            StepKind::Approval => S::WaitingApproval,
            StepKind::Wait => S::WaitingSignal,
            _ => S::Ready,
        },
        // What an approval guards is not run again under the old one.
        (S::WaitingApproval | S::Failed, E::OperatorRetry { ask: true }) if !pure => S::WaitingApproval,
        (S::WaitingApproval, E::DirectiveAsked) if gate || (forward && !pure) => S::WaitingApproval,
        (S::Failed, E::DirectiveAsked) if gate => S::WaitingApproval,
        (S::WaitingApproval | S::Failed, E::OperatorSkip) => S::Skipped,

        (S::WaitingSignal, E::Woken) => match kind {
            StepKind::Wait => S::Succeeded,
            _ => S::Ready,
        },
        (S::WaitingSignal, E::TimedOut) => match kind {
            StepKind::Wait => S::Failed,
            _ => S::Ready,
        },

        (S::InDoubt, E::Resolved(Resolution::Happened)) => S::Succeeded,
        (S::InDoubt, E::Resolved(Resolution::DidNotHappen)) => S::Ready,
        (S::InDoubt, E::Resolved(Resolution::Failed)) => S::Failed,

        (S::Pending | S::Ready | S::WaitingApproval | S::WaitingSignal, E::RunFailed) => S::Failed,
        (S::Pending | S::Ready | S::Running | S::WaitingApproval | S::WaitingSignal | S::InDoubt, E::RunCanceled) => {
            S::Canceled
        }

        // What undoes is not undone, and there is no way back from it.
        (S::Succeeded | S::Failed | S::InDoubt, E::RollbackFinished) if forward => S::RolledBack,
        (S::Ready | S::Succeeded | S::Skipped | S::Failed | S::WaitingApproval | S::WaitingSignal, E::Rewound)
            if forward =>
        {
            S::Pending
        }

        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// Every (kind, state, event) triple: the allowed ones are listed, all others are refused.
    #[test]
    fn pair_table() {
        let mut table = String::new();
        for kind in StepKind::ALL {
            writeln!(table, "## {kind}").unwrap();
            for from in StepState::ALL {
                for event in StepEvent::ALL {
                    if let Some(to) = next(*from, *kind, *event) {
                        writeln!(table, "{from} --{event}--> {to}").unwrap();
                    }
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn only_rollback_and_an_operator_leave_a_finished_step() {
        for kind in StepKind::ALL {
            for from in StepState::ALL.iter().filter(|state| state.is_finished()) {
                for event in StepEvent::ALL {
                    let operator = matches!(
                        event,
                        StepEvent::OperatorRetry { .. }
                            | StepEvent::OperatorSkip
                            | StepEvent::DirectiveAsked
                            | StepEvent::Rewound
                            | StepEvent::RollbackFinished
                    );
                    assert!(operator || next(*from, *kind, *event).is_none(), "{kind}: {from} --{event}-->");
                }
            }
        }
    }

    #[test]
    fn canceled_and_rolled_back_are_left_by_nothing() {
        for kind in StepKind::ALL {
            for event in StepEvent::ALL {
                assert_eq!(next(StepState::Canceled, *kind, *event), None);
                assert_eq!(next(StepState::RolledBack, *kind, *event), None);
            }
        }
    }
}
