//! The life of a receipt. The intent is committed before the effect, the outcome after it; what lies between is doubt.

use crate::state::ReceiptState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptEvent {
    Succeeded,
    Failed,
    /// The worker was lost, or the answer was, after the intent.
    Lost,
}

impl ReceiptEvent {
    pub const ALL: &'static [Self] = &[Self::Succeeded, Self::Failed, Self::Lost];
}

/// The whole machine. `None` means that the arrow does not exist.
pub const fn next(from: ReceiptState, event: ReceiptEvent) -> Option<ReceiptState> {
    use ReceiptEvent as E;
    use ReceiptState as S;
    Some(match (from, event) {
        (S::Intent | S::InDoubt, E::Succeeded) => S::Succeeded,
        (S::Intent | S::InDoubt, E::Failed) => S::Failed,
        (S::Intent, E::Lost) => S::InDoubt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_table() {
        let table: String = ReceiptState::ALL
            .iter()
            .flat_map(|from| ReceiptEvent::ALL.iter().map(move |event| (from, event)))
            .filter_map(|(from, event)| next(*from, *event).map(|to| format!("{from} --{event:?}--> {to}\n")))
            .collect();
        insta::assert_snapshot!(table);
    }
}
