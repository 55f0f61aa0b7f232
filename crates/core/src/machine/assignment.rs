//! The life of an assignment: a run is offered to a worker session, which takes it, and keeps it until the run has no more use
//! for it.

use crate::state::AssignmentState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentEvent {
    /// The worker's checks have passed, and it takes the run.
    Acked,
    /// A check of the worker has failed.
    Refused,
    /// The worker did not answer in time.
    Expired,
    /// The worker's session is over.
    Lost,
    /// The run has ended, or has waited too long.
    Released,
}

impl AssignmentEvent {
    pub const ALL: &'static [Self] = &[Self::Acked, Self::Refused, Self::Expired, Self::Lost, Self::Released];
}

/// The whole machine. `None` means that the arrow does not exist.
pub const fn next(from: AssignmentState, event: AssignmentEvent) -> Option<AssignmentState> {
    use AssignmentEvent as E;
    use AssignmentState as S;
    Some(match (from, event) {
        (S::Offered, E::Acked) => S::Acked,
        (S::Offered, E::Refused) => S::Refused,
        (S::Offered, E::Expired) => S::Expired,
        (S::Offered | S::Acked, E::Lost) => S::Lost,
        (S::Offered | S::Acked, E::Released) => S::Released,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_table() {
        let table: String = AssignmentState::ALL
            .iter()
            .flat_map(|from| AssignmentEvent::ALL.iter().map(move |event| (from, event)))
            .filter_map(|(from, event)| next(*from, *event).map(|to| format!("{from} --{event:?}--> {to}\n")))
            .collect();
        insta::assert_snapshot!(table);
    }
}
