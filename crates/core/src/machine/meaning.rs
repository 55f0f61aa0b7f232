//! What each state means, in one line, for the pages that are made from the machines.

use crate::state::{RunState, StepState};

impl RunState {
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pending => "admitted; nothing started",
            Self::Running => "a step is ready or running",
            Self::WaitingApproval => "only a human blocks it",
            Self::WaitingSignal => "only a signal or timer blocks it",
            Self::Paused => "an operator's directive is needed",
            Self::RollingBack => "rollback steps are outstanding",
            Self::Succeeded => "every step succeeded or was skipped",
            Self::Failed => "ended by failure, denial, rejection; rollback, if any, has ended",
            Self::Canceled => "stopped on request",
        }
    }
}

impl StepState {
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Pending => "inserted, not yet activated",
            Self::Ready => "claimable when `eligible_at <= now` (first try, retry, delay alike)",
            Self::Running => "claimed, `attempt >= 1`",
            Self::WaitingApproval => "an open approval blocks it",
            Self::WaitingSignal => "a signal or a deadline wakes it",
            Self::InDoubt => "an effect was sent, its outcome is unknown (mirrors the receipt)",
            Self::Succeeded => "output and receipts stored",
            Self::Skipped => "condition false, or skipped by an operator with a reason",
            Self::Failed => "terminal error, denial, rejection, or budget exhausted",
            Self::Canceled => "the run was canceled first",
            Self::RolledBack => "its rollback step succeeded",
        }
    }
}
