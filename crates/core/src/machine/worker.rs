//! The life of a worker. Errored is left only by a passed canary.

use crate::state::WorkerState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEvent {
    Registered,
    DrainRequested,
    CanaryFailed,
    CanaryPassed,
    HeartbeatLost,
    Unregistered,
}

impl WorkerEvent {
    pub const ALL: &'static [Self] = &[
        Self::Registered,
        Self::DrainRequested,
        Self::CanaryFailed,
        Self::CanaryPassed,
        Self::HeartbeatLost,
        Self::Unregistered,
    ];
}

/// The whole machine. `None` means that the arrow does not exist.
#[expect(clippy::match_same_arms, reason = "one arm an arrow, by where it starts")]
pub const fn next(from: WorkerState, event: WorkerEvent) -> Option<WorkerState> {
    use WorkerEvent as E;
    use WorkerState as S;
    Some(match (from, event) {
        (S::Offline, E::Registered) => S::Online,
        (S::Online, E::DrainRequested) => S::Draining,
        (S::Online | S::Draining, E::CanaryFailed) => S::Errored,
        (S::Errored, E::CanaryPassed) => S::Online,
        (S::Online | S::Draining | S::Errored, E::HeartbeatLost | E::Unregistered) => S::Offline,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_table() {
        let table: String = WorkerState::ALL
            .iter()
            .flat_map(|from| WorkerEvent::ALL.iter().map(move |event| (from, event)))
            .filter_map(|(from, event)| next(*from, *event).map(|to| format!("{from} --{event:?}--> {to}\n")))
            .collect();
        insta::assert_snapshot!(table);
    }
}
