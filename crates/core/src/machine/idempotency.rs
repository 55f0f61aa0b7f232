//! The life of an idempotency record. `processing` exists only where the work is not one commit.

use crate::state::IdempotencyState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdempotencyEvent {
    Completed,
    Failed,
    /// The lock ran out, or a failed request is tried again.
    TakenOver,
}

impl IdempotencyEvent {
    pub const ALL: &'static [Self] = &[Self::Completed, Self::Failed, Self::TakenOver];
}

/// The whole machine. `None` means that the arrow does not exist.
pub const fn next(from: IdempotencyState, event: IdempotencyEvent) -> Option<IdempotencyState> {
    use IdempotencyEvent as E;
    use IdempotencyState as S;
    Some(match (from, event) {
        (S::Processing, E::Completed) => S::Completed,
        (S::Processing, E::Failed) => S::Failed,
        (S::Processing | S::Failed, E::TakenOver) => S::Processing,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_table() {
        let table: String = IdempotencyState::ALL
            .iter()
            .flat_map(|from| IdempotencyEvent::ALL.iter().map(move |event| (from, event)))
            .filter_map(|(from, event)| next(*from, *event).map(|to| format!("{from} --{event:?}--> {to}\n")))
            .collect();
        insta::assert_snapshot!(table);
    }
}
