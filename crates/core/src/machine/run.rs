//! The allowed pairs of run states. A run's state is never set by hand: it is the projection of [`crate::run::project`], and this table checks that the projection moved along an arrow.

use crate::state::RunState;

/// Whether a run may go from `from` to `to`. Staying is always allowed while the run is not terminal.
pub const fn allowed(from: RunState, to: RunState) -> bool {
    use RunState as R;
    match from {
        R::Pending => !matches!(to, R::RollingBack),
        R::Running | R::WaitingSignal => !matches!(to, R::Pending),
        // A run that was paused before anything started is pending again when it is resumed, and so is one whose first
        // step has been approved.
        R::Paused | R::WaitingApproval => true,
        // A rollback ends the run, or stops loudly for an operator, who may also restart the forward steps. Only a run that
        // was made to undo another one succeeds with it.
        R::RollingBack => matches!(to, R::RollingBack | R::Paused | R::Succeeded | R::Failed | R::Canceled),
        R::Succeeded | R::Failed | R::Canceled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn pair_table() {
        let mut table = String::new();
        for from in RunState::ALL {
            for to in RunState::ALL {
                if allowed(*from, *to) {
                    writeln!(table, "{from} -> {to}").unwrap();
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn nothing_leaves_a_terminal_state() {
        for from in RunState::ALL.iter().filter(|state| state.is_terminal()) {
            for to in RunState::ALL {
                assert!(!allowed(*from, *to), "{from} -> {to}");
            }
        }
    }
}
