//! What is sealed into the entries of the streams, and what stands beside the seal.
//!
//! A call has the fields `type`, `ticket` and `sealed`, an answer `type`, `call` and `sealed`; `sealed` is the JSON of
//! [`CallMessage`] or [`AnswerMessage`]. Whatever stands beside the seal is part of it ([`SealedAs`]), so it cannot be changed.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::entry::StreamEntry;
use crate::limits;
use crate::sealing::SealedAs;

/// What a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// What became of a step, or of an effect.
    Result,
    /// Every other call.
    Call,
}

impl CallKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Result => "session.result",
            Self::Call => "session.call",
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        [Self::Result, Self::Call].into_iter().find(|kind| kind.as_str().as_bytes() == text)
    }
}

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// A run that the worker is asked to take as a whole.
    Assign,
    /// Steps to run.
    Command,
    /// Anything else.
    Answer,
}

impl AnswerKind {
    const ALL: [Self; 3] = [Self::Assign, Self::Command, Self::Answer];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assign => "session.assign",
            Self::Command => "session.command",
            Self::Answer => "session.answer",
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().as_bytes() == text)
    }
}

/// From a worker: what it would have sent by `POST`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallMessage<'a> {
    /// Names the call: when it is sent again it has the same, and is worked on once.
    #[serde(borrow)]
    pub idempotency_key: Cow<'a, str>,
    /// By the server's clock, in milliseconds.
    pub sent_at_ms: i64,
    /// W3C trace context.
    #[serde(borrow)]
    pub traceparent: Cow<'a, str>,
    /// The address.
    #[serde(borrow)]
    pub call: Cow<'a, str>,
    #[serde(borrow)]
    pub body: &'a RawValue,
}

/// From a server: what the answer to the request would have been.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerMessage<'a> {
    #[serde(borrow)]
    pub idempotency_key: Cow<'a, str>,
    #[serde(borrow)]
    pub traceparent: Cow<'a, str>,
    pub status: u16,
    /// None where the answer has none.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a RawValue>,
}

/// A call as it stands in the stream.
pub struct CallEntry<'a> {
    pub kind: CallKind,
    pub ticket: &'a [u8],
    pub sealed: &'a [u8],
}

impl<'a> CallEntry<'a> {
    /// `None` where it has not the form of one.
    pub fn of(entry: &'a StreamEntry) -> Option<Self> {
        let kind = CallKind::parse(entry.field("type")?)?;
        let (ticket, sealed) = (entry.field("ticket")?, entry.field("sealed")?);
        let fits = ticket.len() <= limits::TICKET_BYTES_MAX && sealed.len() <= limits::CALL_BYTES_MAX;
        fits.then_some(Self { kind, ticket, sealed })
    }

    pub const fn sealed_as<'b>(&self, channel: &'b str) -> SealedAs<'b> {
        SealedAs::Call { channel, kind: self.kind.as_str() }
    }
}

/// An answer as it stands in the stream.
pub struct AnswerEntry<'a> {
    pub kind: AnswerKind,
    /// The call that it answers.
    pub call: &'a str,
    pub sealed: &'a [u8],
}

impl<'a> AnswerEntry<'a> {
    /// `None` where it has not the form of one.
    pub fn of(entry: &'a StreamEntry) -> Option<Self> {
        let kind = AnswerKind::parse(entry.field("type")?)?;
        let call = std::str::from_utf8(entry.field("call")?).ok()?;
        let sealed = entry.field("sealed")?;
        (sealed.len() <= limits::ANSWER_BYTES_MAX).then_some(Self { kind, call, sealed })
    }

    pub const fn sealed_as(&self, channel: &'a str) -> SealedAs<'a> {
        SealedAs::Answer { channel, kind: self.kind.as_str(), call: self.call }
    }
}
