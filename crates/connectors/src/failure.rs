//! Why a call failed: whether it may have happened all the same, and whether another try makes sense.

use std::time::Duration;

use interlock_core::plan::retry::ErrorClass;
use interlock_core::text::visible::visible;

use crate::limits;

/// Whether a call that failed may have changed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Nothing was sent, or the target has said no.
    CertainlyNot,
    /// Sent, and no usable answer.
    Unknown,
}

/// Why a call failed. Nothing in here holds a secret: the caller removes secrets from an answer before it is read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CallFailure {
    pub sent: Sent,
    pub class: ErrorClass,
    pub code: String,
    pub message: String,
    /// When the target wants to be asked again.
    pub after: Option<Duration>,
}

impl CallFailure {
    /// Nothing was sent, and nothing would be the next time.
    pub fn refused(code: &str, message: impl Into<String>) -> Self {
        Self::new(Sent::CertainlyNot, ErrorClass::Invalid, code, message)
    }

    pub fn new(sent: Sent, class: ErrorClass, code: &str, message: impl Into<String>) -> Self {
        Self { sent, class, code: code.to_owned(), message: message.into(), after: None }
    }

    /// The call was answered, and the answer says that it happened; but it cannot be read.
    pub fn unreadable(what: impl Into<String>) -> Self {
        Self::new(Sent::Unknown, ErrorClass::Unavailable, "ANSWER_UNREADABLE", what)
    }
}

/// The beginning of what another system said, safe to show.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(limits::QUOTED_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    visible(&shown).into_owned()
}
