//! Calls of workers that would not come to the same when they are made twice: a second `register` would begin a second session,
//! and a second `poll` hand out further steps. One that comes again under its idempotency key is discarded; another registration under
//! the key of an earlier one is refused.
//!
//! What this server has answered is remembered for a while, and not without bound. A repeat that it has forgotten, or that another
//! server gets, does no harm: a session that nobody renews ends with its lease, and steps that no heartbeat lists are taken back. All
//! other calls spell out what they are about, and a repeat of them is told by that.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderMap;
use interlock_core::ids::{SessionId, TenantId};
use interlock_core::json::Hash;
use interlock_core::limits::KEY_BYTES_MAX;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::EngineError;
use interlock_protocol::agent::Registered;
use interlock_protocol::call::header::IDEMPOTENCY_KEY;

/// Longer than a poll waits.
const KEPT: Millis = Millis::from_mins(2);
const CALLS_MAX: usize = 10_000;
/// Named registrations that are answered at the same time, at most.
const REGISTERED_AT_ONCE: usize = 32;

/// A call by the name that its worker has given it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NamedCall {
    Register { tenant: TenantId, client: Arc<str>, worker: String, key: String },
    Poll { session: SessionId, key: String },
}

/// A registration that was answered.
pub struct KeptRegistration {
    /// The hash of what the worker said of itself.
    pub hello: Hash,
    pub answer: Registered,
}

/// The named calls of the last minutes.
#[derive(Default)]
pub struct RepeatedCalls {
    known: Mutex<KnownCalls>,
    /// Of two registrations with one name the second waits for the first. Others seldom do: after a restart many workers come at
    /// once, and the store takes them together.
    registering: [tokio::sync::Mutex<()>; REGISTERED_AT_ONCE],
}

#[derive(Default)]
struct KnownCalls {
    /// Registrations with their answers, which are told again.
    calls: HashMap<NamedCall, Option<KeptRegistration>>,
    /// In the order in which they came.
    order: VecDeque<(Timestamp, NamedCall)>,
}

/// The name of a call, if it has one.
pub fn name_of(headers: &HeaderMap) -> Option<String> {
    let key = headers.get(IDEMPOTENCY_KEY)?.to_str().ok()?;
    (1..=KEY_BYTES_MAX).contains(&key.len()).then(|| key.to_owned())
}

impl RepeatedCalls {
    fn known(&self) -> MutexGuard<'_, KnownCalls> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the session has made this poll before. It has from now on.
    pub fn is_repeated_poll(&self, session: SessionId, headers: &HeaderMap, now: Timestamp) -> bool {
        let Some(key) = name_of(headers) else { return false };
        !self.known().add(NamedCall::Poll { session, key }, None, now)
    }

    /// Held while a named registration is answered.
    pub async fn registering(&self, call: &NamedCall) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        call.hash(&mut hasher);
        let turn = usize::try_from(hasher.finish() % REGISTERED_AT_ONCE as u64).unwrap_or_default();
        self.registering[turn].lock().await
    }

    /// What the registration was answered before. Refused where the worker said something else of itself then.
    pub fn registered(&self, call: &NamedCall, hello: Hash, now: Timestamp) -> Result<Option<Registered>, EngineError> {
        let mut known = self.known();
        known.forget_old(now);
        match known.calls.get(call) {
            Some(Some(kept)) if kept.hello != hello => Err(EngineError::IdempotencyMismatch),
            kept => Ok(kept.and_then(Option::as_ref).map(|kept| kept.answer.clone())),
        }
    }

    pub fn keep(&self, call: NamedCall, kept: KeptRegistration, now: Timestamp) {
        self.known().add(call, Some(kept), now);
    }
}

impl KnownCalls {
    /// False where it is known already.
    fn add(&mut self, call: NamedCall, kept: Option<KeptRegistration>, now: Timestamp) -> bool {
        self.forget_old(now);
        if self.calls.contains_key(&call) {
            return false;
        }
        self.order.push_back((now, call.clone()));
        self.calls.insert(call, kept);
        true
    }

    fn forget_old(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(at, _)| now.since(*at) >= KEPT) || self.order.len() >= CALLS_MAX {
            let Some((_, call)) = self.order.pop_front() else { break };
            self.calls.remove(&call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(IDEMPOTENCY_KEY, key.parse().unwrap());
        headers
    }

    fn session(number: u128) -> SessionId {
        SessionId(uuid::Uuid::from_u128(number))
    }

    #[test]
    fn a_poll_is_new_once_for_its_session() {
        let (calls, now) = (RepeatedCalls::default(), Timestamp(1_000));
        assert!(!calls.is_repeated_poll(session(1), &named("a"), now));
        assert!(calls.is_repeated_poll(session(1), &named("a"), now));
        assert!(!calls.is_repeated_poll(session(2), &named("a"), now), "another session's");
        assert!(!calls.is_repeated_poll(session(1), &named("b"), now), "another poll");
        for _ in 0..2 {
            assert!(!calls.is_repeated_poll(session(1), &HeaderMap::new(), now), "it has no name");
            assert!(!calls.is_repeated_poll(session(1), &named(&"x".repeat(KEY_BYTES_MAX + 1)), now));
        }
        assert!(!calls.is_repeated_poll(session(1), &named("a"), now + KEPT), "it was long ago");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (calls, now) = (RepeatedCalls::default(), Timestamp(1_000));
        for number in 0..CALLS_MAX + 10 {
            assert!(!calls.is_repeated_poll(session(1), &named(&number.to_string()), now));
        }
        let known = calls.known();
        assert!(known.calls.len() <= CALLS_MAX && known.order.len() <= CALLS_MAX);
    }
}
