//! A server that cannot be reached: said once, and once more when it is over.

use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_protocol::transport::TransportError;
use tokio::time::Instant;
use tracing::{debug, warn};

/// A request that got no answer, with every cause that is known.
pub(crate) fn lost(error: &reqwest::Error) -> TransportError {
    let mut what = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        what = format!("{what}: {cause}");
        source = cause.source();
    }
    TransportError::Unavailable(what)
}

/// The calls that a worker makes again and again. Each can fail alone: a store whose disk is full answers polls for which
/// there is no work, and takes no renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RepeatedCall {
    Poll,
    Renewal,
}

#[derive(Debug, Default)]
pub(crate) struct Outage(Mutex<FailingCalls>);

#[derive(Debug, Default)]
struct FailingCalls {
    since: Option<Instant>,
    calls: Vec<RepeatedCall>,
}

impl Outage {
    /// A call got no answer. Answers whether this is the first word of it.
    pub fn met(&self, call: RepeatedCall, error: &TransportError) -> bool {
        let mut failing = self.failing();
        if !failing.calls.contains(&call) {
            failing.calls.push(call);
        }
        let is_new = failing.since.is_none();
        if is_new {
            failing.since = Some(Instant::now());
            warn!(%error, "the server does not answer; trying again until it does");
        } else {
            debug!(%error, "still no answer");
        }
        is_new
    }

    /// A call was answered. Answers whether with that the outage is over: no other call still fails.
    pub fn over(&self, call: RepeatedCall) -> bool {
        let mut failing = self.failing();
        failing.calls.retain(|other| *other != call);
        failing.calls.is_empty() && Self::ended(&mut failing)
    }

    /// The worker has registered: calls of a session before count no more.
    pub fn over_with_new_session(&self) -> bool {
        let mut failing = self.failing();
        failing.calls.clear();
        Self::ended(&mut failing)
    }

    fn ended(failing: &mut FailingCalls) -> bool {
        let Some(since) = failing.since.take() else { return false };
        // At the level of its beginning, so that a log that has one has both.
        warn!(seconds = since.elapsed().as_secs(), "the server answers again");
        true
    }

    fn failing(&self) -> MutexGuard<'_, FailingCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::RepeatedCall::{Poll, Renewal};
    use super::*;

    #[test]
    fn an_outage_is_told_once_and_is_over_when_every_call_is_answered() {
        let outage = Outage::default();
        let away = TransportError::Unavailable("its disk is full".into());
        assert!(!outage.over(Poll), "there was none");
        assert!(outage.met(Renewal, &away));
        // Polls are answered all the while.
        assert!(!outage.over(Poll) && !outage.met(Renewal, &away) && !outage.over(Poll));
        assert!(!outage.met(Poll, &away) && !outage.over(Renewal) && outage.over(Poll));
        assert!(outage.met(Poll, &away) && outage.over_with_new_session() && !outage.over(Poll));
    }
}
