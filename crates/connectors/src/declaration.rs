//! What an operation says about itself, whatever its fields hold.

use interlock_core::state::EffectClass;

use crate::schema::Field;

/// What is fixed about an operation: for checks, approval cards and the reference page.
#[derive(Debug)]
pub struct Declaration {
    /// `slack.post`.
    pub operation: &'static str,
    pub about: &'static str,
    /// All of them count for what people approve: the digest of an approval is over the bound bytes, which are what is sent.
    pub fields: &'static [Field],
    /// The strictest class that it can have; [`Connector::effect`](crate::Connector::effect) knows what it has with some fields.
    pub effect: EffectClass,
    /// How its effect key is made, in words: `slack:post:{channel}:{thread_ts}:{body_hash}`.
    pub key: &'static str,
    pub reversal: Reversal,
    /// It reads the present state first: for the approvers, and for its inverse.
    pub reads_before: bool,
    /// How the target is asked whether a call has happened whose answer was lost.
    pub probe: Option<&'static str>,
}

/// Whether there is a way back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reversal {
    /// It changes nothing.
    NotNeeded,
    /// By this operation, in these words.
    Inverse {
        by: &'static str,
        about: &'static str,
    },
    Irreversible(&'static str),
}
