//! Why a call failed: whether it may have happened all the same, and whether another try makes sense.

use std::time::Duration;

use interlock_core::plan::retry::ErrorClass;
use interlock_core::text::visible::visible;

use crate::limits;
use crate::request::Response;

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

    /// What an answer means that is not a success.
    ///
    /// | status | may have happened | another try |
    /// |---|---|---|
    /// | 307, 308 | no: they ask for the same call elsewhere, and redirects of calls that change something are not followed | no |
    /// | other 3xx | not known: many systems answer a change that they made by leading on to its page | no |
    /// | 425, 429 | no | yes, after `Retry-After` |
    /// | 408 | not known: a proxy may say it of a system behind it that has the call | yes, after `Retry-After` |
    /// | other 4xx, 501, 505 | no | no |
    /// | other 5xx | not known | yes, after `Retry-After` |
    pub fn of_answer(answer: &Response, said: &str) -> Self {
        let status = answer.status;
        let sent = match status {
            307 | 308 | 501 | 505 => Sent::CertainlyNot,
            300..=399 | 408 | 500.. => Sent::Unknown,
            _ => Sent::CertainlyNot,
        };
        let class = match status {
            300..=399 | 501 | 505 => ErrorClass::Invalid,
            425 => ErrorClass::Unavailable,
            _ => ErrorClass::of_http_status(status),
        };
        let mut message = match status {
            300..=399 => format!("the target answered with a redirect ({status}); name the address that it leads to"),
            _ => format!("the target answered with status {status}"),
        };
        if !said.is_empty() {
            message.push_str(": ");
            message.push_str(&quoted(said));
        }
        let after = answer.retry_after().filter(|_| class.is_retryable());
        Self { sent, class, code: format!("HTTP_{status}"), message, after }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, headers: &[(&str, &str)]) -> CallFailure {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        CallFailure::of_answer(&Response { status, headers, body: Vec::new() }, "no\u{202e}")
    }

    #[test]
    fn a_status_says_whether_it_may_have_happened_and_whether_to_try_again() {
        for (status, sent, retried) in [
            (301, Sent::Unknown, false),
            (302, Sent::Unknown, false),
            (303, Sent::Unknown, false),
            (307, Sent::CertainlyNot, false),
            (308, Sent::CertainlyNot, false),
            (400, Sent::CertainlyNot, false),
            (401, Sent::CertainlyNot, false),
            (404, Sent::CertainlyNot, false),
            (408, Sent::Unknown, true),
            (409, Sent::CertainlyNot, false),
            (425, Sent::CertainlyNot, true),
            (429, Sent::CertainlyNot, true),
            (500, Sent::Unknown, true),
            (501, Sent::CertainlyNot, false),
            (502, Sent::Unknown, true),
            (503, Sent::Unknown, true),
            (504, Sent::Unknown, true),
            (529, Sent::Unknown, true),
        ] {
            let failure = failure(status, &[]);
            assert_eq!((failure.sent, failure.class.is_retryable()), (sent, retried), "{status}");
        }
    }

    #[test]
    fn a_target_says_when_to_come_back_within_reason() {
        assert_eq!(failure(429, &[("retry-after", "7")]).after, Some(Duration::from_secs(7)));
        assert_eq!(failure(429, &[("retry-after", "999999")]).after, Some(limits::RETRY_AFTER_MAX));
        assert_eq!(failure(429, &[("retry-after", "soon")]).after, None);
        let date = ("date", "Wed, 18 Nov 2026 09:00:00 GMT");
        let later = ("retry-after", "Wed, 18 Nov 2026 09:01:30 GMT");
        assert_eq!(failure(503, &[date, later]).after, Some(Duration::from_secs(90)), "by the target's own clock");
        assert_eq!(failure(503, &[later]).after, None, "how late it is there is not known");
        assert_eq!(failure(503, &[date, ("retry-after", "Wed, 18 Nov 2026 08:00:00 GMT")]).after, None, "it is over");
        assert_eq!(failure(400, &[("retry-after", "7")]).after, None);
        assert!(failure(400, &[]).message.ends_with("no\\u{202e}"));
    }
}
