//! The calls of the last minutes. One that comes again is not worked on: it is under way, or gets the answer that it
//! got.
//!
//! What is remembered is bounded. A call that was forgotten, or that another server has answered, is worked on again: every
//! call of a worker is safe to repeat.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use interlock_broker::message::AnswerKind;
use tokio::time::Instant;

/// Longer than a call may be old, and than a poll waits.
const KEPT: Duration = Duration::from_mins(2);
const CALLS_MAX: usize = 100_000;
/// Of the answers that are kept.
const BYTES_MAX: usize = 16 << 20;

/// Names a call: its channel, and the idempotency key that its worker has given it. Another call under the same key is another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CallName {
    pub channel: Arc<str>,
    pub key: Arc<str>,
    /// The hash of its address and its body.
    pub digest: [u8; 32],
}

/// An answer as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenAnswer {
    pub kind: AnswerKind,
    pub plain: Arc<[u8]>,
}

/// What is known of a call that comes in.
#[derive(Debug, PartialEq, Eq)]
pub enum KnownCall {
    New,
    UnderWay,
    Answered(WrittenAnswer),
}

#[derive(Default)]
pub struct RecentCalls {
    calls: HashMap<CallName, Option<WrittenAnswer>>,
    /// In the order in which they came.
    order: VecDeque<(Instant, CallName)>,
    bytes: usize,
}

impl RecentCalls {
    pub fn begin(&mut self, name: &CallName, now: Instant) -> KnownCall {
        self.forget_old(now);
        match self.calls.get(name) {
            Some(Some(answer)) => KnownCall::Answered(answer.clone()),
            Some(None) => KnownCall::UnderWay,
            None => {
                self.calls.insert(name.clone(), None);
                self.order.push_back((now, name.clone()));
                KnownCall::New
            }
        }
    }

    /// The call has this answer.
    pub fn answered(&mut self, name: &CallName, answer: WrittenAnswer) {
        if let Some(kept @ None) = self.calls.get_mut(name) {
            self.bytes += answer.plain.len();
            *kept = Some(answer);
        }
        while self.bytes > BYTES_MAX && self.forget_oldest() {}
    }

    /// The call has no answer: when it comes again it is new.
    pub fn forget(&mut self, name: &CallName) {
        if let Some(Some(answer)) = self.calls.remove(name) {
            self.bytes -= answer.plain.len();
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while self.order.front().is_some_and(|(at, _)| now.duration_since(*at) >= KEPT) || self.order.len() >= CALLS_MAX
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((_, name)) = self.order.pop_front() else { return false };
        self.forget(&name);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: usize) -> CallName {
        CallName { channel: "c".into(), key: key.to_string().into(), digest: [0; 32] }
    }

    fn answer(bytes: usize) -> WrittenAnswer {
        WrittenAnswer { kind: AnswerKind::Answer, plain: vec![1; bytes].into() }
    }

    #[test]
    fn a_call_is_new_once() {
        let (mut recent, now) = (RecentCalls::default(), Instant::now());
        assert_eq!(recent.begin(&name(1), now), KnownCall::New);
        assert_eq!(recent.begin(&name(1), now), KnownCall::UnderWay);
        let elsewhere = CallName { channel: "d".into(), ..name(1) };
        assert_eq!(recent.begin(&elsewhere, now), KnownCall::New, "another channel's");
        let other = CallName { digest: [1; 32], ..name(1) };
        assert_eq!(recent.begin(&other, now), KnownCall::New, "another call under its key");
        recent.answered(&name(1), answer(3));
        assert_eq!(recent.begin(&name(1), now + KEPT / 2), KnownCall::Answered(answer(3)));
        recent.forget(&name(1));
        assert_eq!(recent.begin(&name(1), now), KnownCall::New, "it had no answer");
        assert_eq!(recent.begin(&name(1), now + KEPT), KnownCall::New, "it was long ago");
        assert_eq!((recent.bytes, recent.calls.len()), (0, 1), "all others were long ago");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut recent, now) = (RecentCalls::default(), Instant::now());
        for key in 0..CALLS_MAX + 10 {
            assert_eq!(recent.begin(&name(key), now), KnownCall::New);
        }
        assert!(recent.calls.len() <= CALLS_MAX && recent.order.len() <= CALLS_MAX);
        for key in 20..60 {
            recent.answered(&name(key), answer(1 << 20));
        }
        assert!(recent.bytes <= BYTES_MAX, "{}", recent.bytes);
        assert_eq!(recent.begin(&name(59), now), KnownCall::Answered(answer(1 << 20)), "the newest stay");
    }
}
