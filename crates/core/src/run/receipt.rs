//! Receipts: the durable record of one effect. The intent is committed before the first byte is sent, the outcome
//! after the answer; what a crash leaves between the two is in doubt, and is never tried again blindly.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Run;
use crate::ids::ReceiptId;
use crate::json::{Hash, HashHex, Json};
use crate::machine::receipt::{ReceiptEvent, next};
use crate::state::{EffectClass, ReceiptState};
use crate::time::Timestamp;

/// What the key of an intent begins with that came with its claim. Workers may not use it for effects of their own.
pub const CLAIM_TEMPLATE: &str = "interlock:claim";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Receipt {
    pub id: ReceiptId,
    pub position: u32,
    pub iteration: u32,
    pub attempt: u32,
    /// Unique in the tenant; the same for every automatic retry of the same effect.
    pub key: String,
    pub effect: EffectClass,
    pub state: ReceiptState,
    pub request: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Json>,
    pub intent_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_at: Option<Timestamp>,
    /// The outcome came after the attempt had been given up.
    #[serde(default)]
    pub late: bool,
    /// What became of an earlier try under this key was never learned. That a later one was refused does not settle it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// The policy bundle that allowed it, by its hash; absent where no policy was asked, and of effects of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub bundle: Option<HashHex>,
}

/// That a run has, or is about to have, an effect that counts as the same in the whole tenant. Of those with the same identity and number
/// there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectHold {
    pub identity: Hash,
    pub number: u64,
    pub receipt: ReceiptId,
    pub at: Timestamp,
}

impl Receipt {
    /// Whether the intent came with the claim: the worker does not name its effects, so all that is known of them is
    /// that it was given the step.
    pub fn is_of_claim(&self) -> bool {
        self.key.strip_prefix(CLAIM_TEMPLATE).is_some_and(|rest| rest.starts_with('#'))
    }

    /// What it says after a word of the attempt that has it: an attempt speaks for itself, and not for an earlier one whose outcome was
    /// never learned.
    pub fn reported(&self, happened: bool) -> Option<ReceiptState> {
        let event = if happened {
            ReceiptEvent::Succeeded
        } else if self.unsettled {
            ReceiptEvent::Lost
        } else {
            ReceiptEvent::Failed
        };
        next(self.state, event)
    }

    /// Whether something may have become of it that a try which takes it over cannot know. Of a read nothing can have, whatever the
    /// next one calls itself; and a read that has taken over something else does not settle that.
    pub fn leaves_unsettled(&self) -> bool {
        self.is_open() && (self.unsettled || self.effect != EffectClass::Read)
    }

    /// Whether another attempt may have the effect once more although it may have happened.
    pub fn is_repeatable_as(&self, effect: EffectClass) -> bool {
        !self.leaves_unsettled() || (self.effect != EffectClass::Unsafe && effect != EffectClass::Unsafe)
    }

    /// Whether it has no outcome yet.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, ReceiptState::Intent | ReceiptState::InDoubt)
    }

    /// From when on it is believed of an effect which the ended run left open that it did not happen. `after_end` is when nothing that
    /// was under way at the end can arrive any more; a doubt that was there before the end has waited already.
    pub fn deniable_from(&self, run: &Run, after_end: Timestamp) -> Timestamp {
        let was_in_doubt = self.state == ReceiptState::InDoubt && self.position == run.position;
        let known_at = run.notes.doubt_known_at.filter(|_| was_in_doubt);
        known_at.map_or(after_end, |at| at.min(after_end))
    }

    /// Whether it is not known what became of an effect that must not be repeated. Of a run that has ended, which sends nothing
    /// any more, that is true of every open intent.
    pub fn is_doubtful(&self) -> bool {
        self.effect == EffectClass::Unsafe && self.is_open()
    }
}
