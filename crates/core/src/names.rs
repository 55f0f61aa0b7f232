//! What the seeds call our states. Inside there is one word for one thing; at the edges that must speak a seed's own
//! language (the runbook surface, the queue messages) the words come from here.

use crate::state::{ApprovalState, Detail, RunState, StepState};

/// One of the five documents that describe the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Seed {
    S000,
    S001,
    S002,
    S003,
    S004,
}

impl Seed {
    pub const ALL: &'static [Self] = &[Self::S000, Self::S001, Self::S002, Self::S003, Self::S004];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S000 => "000",
            Self::S001 => "001",
            Self::S002 => "002",
            Self::S003 => "003",
            Self::S004 => "004",
        }
    }
}

/// 002 and 004 write it with two l. We do not, so the word is put together here and nowhere else.
const CANCELED_WITH_TWO_L: &str = concat!("cancel", "led");

impl RunState {
    /// The word a seed uses for this state; none where the seed knows no such state.
    pub const fn seed_name(self, seed: Seed) -> Option<&'static str> {
        self.seed_names(seed).first().copied()
    }

    /// All the words a seed has for this state, the usual one first. Where there is a second one, it tells apart
    /// what we tell apart by `detail`.
    #[expect(clippy::match_same_arms, reason = "a table: one arm a cell or a row")]
    pub const fn seed_names(self, seed: Seed) -> &'static [&'static str] {
        use Seed as D;
        match (self, seed) {
            (Self::Pending, D::S000) => &["queued"],
            (Self::Pending, D::S001) => &["PENDING"],
            (Self::Pending, D::S002) => &["queued", "assigning_worker"],
            (Self::Pending, D::S003) => &[],
            (Self::Pending, D::S004) => &["pending"],

            (Self::Running, D::S000) => &["running", "failed_retryable"],
            (Self::Running, D::S001 | D::S003) => &["RUNNING"],
            (Self::Running, D::S002) => &["executing"],
            (Self::Running, D::S004) => &["running"],

            (Self::WaitingApproval, D::S000) => &["waiting_approval"],
            (Self::WaitingApproval, D::S001) => &["WAITING_APPROVAL"],
            (Self::WaitingApproval, D::S002) => &["waiting_for_approval"],
            (Self::WaitingApproval, D::S003) => &["RUNNING"],
            (Self::WaitingApproval, D::S004) => &["awaiting_approval"],

            (Self::WaitingSignal, D::S000 | D::S001 | D::S002) => &[],
            (Self::WaitingSignal, D::S003) => &["RUNNING"],
            (Self::WaitingSignal, D::S004) => &["waiting_external"],

            (Self::Paused, D::S002) => &["paused"],
            (Self::Paused, D::S000 | D::S001 | D::S003 | D::S004) => &[],

            (Self::RollingBack, D::S002) => &["rollback"],
            (Self::RollingBack, D::S000 | D::S001 | D::S003 | D::S004) => &[],

            (Self::Succeeded, D::S000) => &["succeeded"],
            (Self::Succeeded, D::S001) => &["SUCCEEDED"],
            (Self::Succeeded, D::S002 | D::S004) => &["completed"],
            (Self::Succeeded, D::S003) => &["COMPLETED"],

            (Self::Failed, D::S000) => &["failed_terminal"],
            (Self::Failed, D::S001 | D::S003) => &["FAILED"],
            (Self::Failed, D::S002 | D::S004) => &["failed"],

            (Self::Canceled, D::S000) => &["canceled"],
            (Self::Canceled, D::S001 | D::S003) => &["CANCELED"],
            (Self::Canceled, D::S002 | D::S004) => &[CANCELED_WITH_TWO_L],
        }
    }

    /// What the runbook surface calls this state: 002's word, and the nearest one where 002 has none. A session that
    /// waits for a signal executes.
    pub const fn on_runbook_surface(self, detail: Option<Detail>) -> &'static str {
        match (self, detail) {
            (Self::Pending, Some(Detail::AssigningWorker)) => "assigning_worker",
            (Self::WaitingSignal, _) => "executing",
            (Self::Canceled, _) => CANCELED_WITH_TWO_L,
            _ => match self.seed_name(Seed::S002) {
                Some(name) => name,
                None => self.as_str(),
            },
        }
    }

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
    /// The word a seed uses for this state; none where the seed knows no such state.
    pub const fn seed_name(self, seed: Seed) -> Option<&'static str> {
        self.seed_names(seed).first().copied()
    }

    /// All the words a seed has for this state, the usual one first. 004 has no words for steps.
    #[expect(clippy::match_same_arms, reason = "a table: one arm a cell or a row")]
    pub const fn seed_names(self, seed: Seed) -> &'static [&'static str] {
        use Seed as D;
        match (self, seed) {
            (Self::InDoubt | Self::Skipped, _) | (_, D::S004) => &[],

            (Self::Pending, D::S000) => &[],
            (Self::Pending, D::S001 | D::S003) => &["PENDING"],
            (Self::Pending, D::S002) => &["pending"],

            (Self::Ready, D::S000) => &["ready", "failed_retryable"],
            (Self::Ready, D::S001) => &["PENDING"],
            (Self::Ready, D::S002) => &["approved"],
            (Self::Ready, D::S003) => &["READY"],

            (Self::Running, D::S000 | D::S002) => &["running"],
            (Self::Running, D::S001 | D::S003) => &["RUNNING"],

            (Self::WaitingApproval, D::S000) => &["waiting_approval"],
            (Self::WaitingApproval, D::S001) => &["WAITING_APPROVAL"],
            (Self::WaitingApproval, D::S002) => &["awaiting_approval"],
            (Self::WaitingApproval | Self::WaitingSignal, D::S003) => &["WAITING"],
            (Self::WaitingSignal, D::S000 | D::S001 | D::S002) => &[],

            (Self::Succeeded, D::S000 | D::S002) => &["succeeded"],
            (Self::Succeeded, D::S001) => &["SUCCEEDED"],
            (Self::Succeeded, D::S003) => &["DONE"],

            (Self::Failed, D::S000) => &["failed_terminal"],
            (Self::Failed, D::S001) => &["FAILED"],
            (Self::Failed, D::S002) => &["failed"],
            (Self::Failed, D::S003) => &["DEAD"],

            (Self::Canceled, D::S000) => &["canceled"],
            (Self::Canceled, D::S001) => &["CANCELED"],
            (Self::Canceled, D::S002 | D::S003) => &[],

            (Self::RolledBack, D::S002) => &["rolled_back"],
            (Self::RolledBack, D::S000 | D::S001 | D::S003) => &[],
        }
    }

    /// What the runbook surface calls this state: 002's word, and the nearest one where 002 has none. The canonical
    /// name stands beside it there.
    pub const fn on_runbook_surface(self) -> &'static str {
        match self {
            Self::WaitingSignal => "running",
            Self::Skipped => "succeeded",
            // 002 §7.3: what a lost worker leaves behind has failed until somebody says otherwise.
            Self::InDoubt | Self::Canceled => "failed",
            _ => match self.seed_name(Seed::S002) {
                Some(name) => name,
                None => self.as_str(),
            },
        }
    }

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

impl ApprovalState {
    /// What the runbook surface calls this state. 002 withdraws no approvals; ours are when their run is canceled.
    pub const fn on_runbook_surface(self) -> &'static str {
        match self {
            Self::Requested => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Canceled => CANCELED_WITH_TWO_L,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runbook_surface_has_a_word_of_002_for_everything() {
        let sessions = [
            "queued",
            "assigning_worker",
            "waiting_for_approval",
            "executing",
            "paused",
            "rollback",
            "completed",
            "failed",
        ];
        for state in RunState::ALL.iter().filter(|state| **state != RunState::Canceled) {
            assert!(sessions.contains(&state.on_runbook_surface(None)), "{state}");
        }
        assert_eq!(RunState::Pending.on_runbook_surface(Some(Detail::AssigningWorker)), "assigning_worker");
        assert_eq!(RunState::Canceled.on_runbook_surface(None), CANCELED_WITH_TWO_L);
        let steps = ["pending", "awaiting_approval", "approved", "running", "succeeded", "failed", "rolled_back"];
        for state in StepState::ALL {
            assert!(steps.contains(&state.on_runbook_surface()), "{state}");
        }
    }

    #[test]
    fn terminal_states_have_a_word_in_every_seed() {
        for state in RunState::ALL.iter().filter(|state| state.is_terminal()) {
            for seed in Seed::ALL {
                assert!(state.seed_name(*seed).is_some(), "{state} in {}", seed.as_str());
            }
        }
    }

    #[test]
    fn the_runbook_surface_speaks_002() {
        let name = |state: RunState| state.seed_name(Seed::S002);
        assert_eq!(name(RunState::Pending), Some("queued"));
        assert_eq!(name(RunState::WaitingApproval), Some("waiting_for_approval"));
        assert_eq!(name(RunState::WaitingSignal), None);
        assert_eq!(name(RunState::Canceled).map(str::len), Some("canceled".len() + 1));
    }

    /// A word of a seed leads back to one of our states, where the seed tells them apart at all.
    #[test]
    fn the_usual_words_are_different_words() {
        for seed in [Seed::S000, Seed::S001, Seed::S002, Seed::S004] {
            let mut words: Vec<_> = RunState::ALL.iter().filter_map(|state| state.seed_name(seed)).collect();
            let count = words.len();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), count, "{}", seed.as_str());
        }
    }
}
