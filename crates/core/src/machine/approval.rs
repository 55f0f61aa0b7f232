//! The life of an approval. One eligible reject rejects; expiry can only expire.

use crate::state::ApprovalState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalEvent {
    /// Enough eligible people have approved.
    QuorumReached,
    Rejected,
    Expired,
    /// The run was canceled, or the action was bound anew.
    Canceled,
}

impl ApprovalEvent {
    pub const ALL: &'static [Self] = &[Self::QuorumReached, Self::Rejected, Self::Expired, Self::Canceled];
}

/// The whole machine. `None` means that the arrow does not exist.
pub const fn next(from: ApprovalState, event: ApprovalEvent) -> Option<ApprovalState> {
    use ApprovalEvent as E;
    use ApprovalState as S;
    Some(match (from, event) {
        (S::Requested, E::QuorumReached) => S::Approved,
        (S::Requested, E::Rejected) => S::Rejected,
        (S::Requested, E::Expired) => S::Expired,
        (S::Requested, E::Canceled) => S::Canceled,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_table() {
        let table: String = ApprovalState::ALL
            .iter()
            .flat_map(|from| ApprovalEvent::ALL.iter().map(move |event| (from, event)))
            .filter_map(|(from, event)| next(*from, *event).map(|to| format!("{from} --{event:?}--> {to}\n")))
            .collect();
        insta::assert_snapshot!(table);
    }
}
