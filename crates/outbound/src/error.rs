//! Why a call was not made, or not answered. Nothing in here repeats a header, a body or a URL's query.

use std::time::Duration;

use crate::rules::Forbidden;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error("the client for outbound calls cannot be set up: {0}")]
    Setup(String),
    #[error("the address cannot be called: {0}")]
    InvalidUrl(String),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    #[error("the call was redirected more than {max} times")]
    TooManyRedirects { max: u32 },
    #[error("the answer is longer than {max} bytes")]
    AnswerTooLarge { max: usize },
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// No connection, so nothing was sent.
    #[error("the call failed: cannot connect: {0}")]
    NotConnected(String),
    #[error("the call failed: {0}")]
    Failed(String),
}

impl OutboundError {
    /// Whether the same call may succeed later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::NotConnected(_) | Self::Failed(_))
    }

    /// A refusal by the rules may be wrapped many times on its way through the client.
    pub(crate) fn of(error: &reqwest::Error, timeout: Duration) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
        let mut last = String::new();
        while let Some(inner) = source {
            if let Some(forbidden) = inner.downcast_ref::<Forbidden>() {
                return Self::Forbidden(*forbidden);
            }
            last = inner.to_string();
            source = inner.source();
        }
        // The outermost text repeats the URL, which may hold a token; the innermost says what happened.
        if error.is_connect() {
            return Self::NotConnected(last);
        }
        if error.is_timeout() {
            return Self::Timeout(timeout);
        }
        Self::Failed(last)
    }
}
