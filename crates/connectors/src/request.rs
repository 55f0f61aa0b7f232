//! A call as data: what is to be sent, with secrets as references, and what was answered.

use std::fmt::Write as _;
use std::time::Duration;

use interlock_core::plan::retry::ErrorClass;
use serde_json::Value;

use crate::connection::{Connection, Login};
use crate::failure::{CallFailure, Sent, quoted};
use crate::limits;

/// One thing to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Http(Box<HttpCall>),
    Mail(Box<Mail>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct HttpCall {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, HeaderContent)>,
    pub body: CallBody,
    pub timeout: Duration,
    /// Redirects are followed only where the call changes nothing.
    pub follows_redirects: bool,
    /// Take the beginning of an answer that is too long, instead of refusing it.
    pub cuts_answer: bool,
}

/// What a header holds. A secret is put in when the call is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderContent {
    Plain(String),
    Secret { name: String },
    Bearer { secret: String },
    Basic { user: String, secret: String },
}

/// What a body holds. References to secrets inside the JSON are resolved when the call is sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum CallBody {
    #[default]
    Empty,
    Json(Value),
    Text(String),
}

/// A message for a mail server.
#[derive(Debug, Clone, PartialEq)]
pub struct Mail {
    pub server: String,
    pub user: Option<String>,
    /// The name of the secret that is the password.
    pub secret: Option<String>,
    pub from: String,
    pub to: Vec<String>,
    pub message: Vec<u8>,
}

impl HttpCall {
    pub fn new(method: &str, url: String) -> Self {
        Self {
            method: method.to_owned(),
            url,
            headers: Vec::new(),
            body: CallBody::Empty,
            timeout: limits::CALL_TIMEOUT,
            follows_redirects: false,
            cuts_answer: false,
        }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), HeaderContent::Plain(value.into())));
        self
    }

    /// Proves who calls, as the connection says.
    pub fn login(mut self, at: &Connection) -> Self {
        let content = match at.login() {
            Login::Anonymous => return self,
            Login::Bearer { secret } => HeaderContent::Bearer { secret: secret.to_owned() },
            Login::Basic { user, secret } => HeaderContent::Basic { user: user.to_owned(), secret: secret.to_owned() },
        };
        self.headers.push(("authorization".to_owned(), content));
        self
    }

    pub fn json(mut self, body: Value) -> Self {
        self.body = CallBody::Json(body);
        self
    }

    pub fn into_request(self) -> Request {
        Request::Http(Box::new(self))
    }
}

/// What a target has answered. The caller has taken out every secret that it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in small letters.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The body as JSON, whatever the status.
    pub fn body_json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The body of a success; what went wrong otherwise, in the body's own words.
    pub fn json(&self) -> Result<Value, CallFailure> {
        if !self.is_success() {
            return Err(CallFailure::of_answer(self, &self.said()));
        }
        self.body_json().ok_or_else(|| CallFailure::unreadable("the target's answer is not JSON"))
    }

    /// What the body says went wrong, where it says it in one of the usual places.
    pub fn said(&self) -> String {
        let Some(body) = self.body_json() else {
            return String::from_utf8_lossy(&self.body).trim().to_owned();
        };
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let places = ["/error/message", "/message", "/error_description", "/error", "/detail", "/title"];
        places.iter().find_map(|place| body.pointer(place).and_then(text)).unwrap_or_default()
    }

    /// How long the target wants to be left alone: it says so in seconds, or names an instant.
    pub fn retry_after(&self) -> Option<Duration> {
        let said = self.header("retry-after")?.trim();
        match said.parse::<u64>() {
            Ok(seconds) => Some(Duration::from_secs(seconds).min(limits::RETRY_AFTER_MAX)),
            Err(_) => self.until(http_date(said)?),
        }
    }

    /// How long it is until an instant that the target names, by the target's own clock: ours may go wrong, and an answer
    /// says when it was made. Nothing where it does not, or where the instant is over.
    pub fn until(&self, instant: jiff::Timestamp) -> Option<Duration> {
        let made_at = http_date(self.header("date")?.trim())?;
        let seconds = u64::try_from(instant.as_second().saturating_sub(made_at.as_second())).ok()?;
        Some(Duration::from_secs(seconds).min(limits::RETRY_AFTER_MAX)).filter(|wait| !wait.is_zero())
    }
}

impl CallFailure {
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

/// `Sun, 06 Nov 1994 08:49:37 GMT`, as HTTP writes an instant.
fn http_date(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// The answers that a connector expects are as many as it has sent requests.
pub fn only(answers: &[Response]) -> Result<&Response, CallFailure> {
    answers
        .last()
        .ok_or_else(|| CallFailure::new(Sent::CertainlyNot, ErrorClass::Terminal, "NOTHING_SENT", "nothing was sent"))
}

/// A part of an address, with everything encoded that would mean something there. One of nothing but dots would climb
/// however it is encoded: the caller has refused it before.
pub fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(byte as char);
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Name and value pairs behind an address.
pub fn with_query(url: String, pairs: &[(&str, &str)]) -> String {
    let encoded: Vec<_> = pairs.iter().map(|(name, value)| format!("{}={}", segment(name), segment(value))).collect();
    format!("{url}?{}", encoded.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_cannot_leave_its_place() {
        assert_eq!(segment("a/b?c#d e%"), "a%2Fb%3Fc%23d%20e%25");
        assert_eq!(with_query("u".into(), &[("q", "a=b&c")]), "u?q=a%3Db%26c");
    }

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
