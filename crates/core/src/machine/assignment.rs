//! The pairing of a run with the session that holds its working directory.

use crate::state::AssignmentState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignmentEvent {
    Acked,
    Released,
    Refused,
    Expired,
    /// The session died.
    Lost,
}

impl AssignmentEvent {
    pub const ALL: &'static [Self] = &[Self::Acked, Self::Released, Self::Refused, Self::Expired, Self::Lost];
}

/// The whole machine. `None` means that the arrow does not exist.
pub const fn next(from: AssignmentState, event: AssignmentEvent) -> Option<AssignmentState> {
    use AssignmentEvent as E;
    use AssignmentState as S;
    Some(match (from, event) {
        (S::Offered, E::Acked) => S::Acked,
        (S::Acked, E::Released) => S::Released,
        (S::Offered | S::Acked, E::Refused) => S::Refused,
        (S::Offered | S::Acked, E::Expired) => S::Expired,
        (S::Offered | S::Acked, E::Lost) => S::Lost,
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
