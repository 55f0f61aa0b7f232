//! What the dialog for a rejection carries: the card that it was opened from, and for whom. It is sealed with a mark, so that
//! only dialogs that this server opened, for the same Slack user, are taken.

use interlock_core::ids::ApprovalId;
use interlock_engine::slack::ButtonValue;
use interlock_engine::slack::take::{Press, Presser};
use interlock_store::SlackRow;
use serde::{Deserialize, Serialize};

use crate::identity::key::same_text;
use crate::state::AppState;

/// A card on which a Slack user has pressed a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressedCard {
    pub approval: ApprovalId,
    pub digest: String,
    pub channel: String,
    pub ts: String,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    card: PressedCard,
    mark: String,
}

impl PressedCard {
    pub fn of(press: &Press) -> Option<Self> {
        let ButtonValue { approval, digest } = ButtonValue::parse(&press.value)?;
        Some(Self { approval, digest, channel: press.channel.clone(), ts: press.ts.clone() })
    }

    /// For the dialog of the Slack user who pressed.
    pub fn seal(&self, state: &AppState, slack: &SlackRow, by: &Presser) -> String {
        let sealed = Sealed { card: self.clone(), mark: self.mark(state, slack, by) };
        serde_json::to_string(&sealed).expect("a card of texts is JSON")
    }

    pub fn open(state: &AppState, slack: &SlackRow, by: &Presser, text: &str) -> Option<Self> {
        let Sealed { card, mark } = serde_json::from_str(text).ok()?;
        same_text(&card.mark(state, slack, by), &mark).then_some(card)
    }

    fn mark(&self, state: &AppState, slack: &SlackRow, by: &Presser) -> String {
        let Self { approval, digest, channel, ts } = self;
        let bound = [&*slack.id.to_string(), &by.team, &by.user, &approval.to_string(), digest, channel, ts];
        state.identity().slack_dialog_mark(&bound.join("\n"))
    }
}
