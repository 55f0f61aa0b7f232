//! What cannot be worked on: a run one of whose rows does not read, whose change the database refuses, or on which the
//! code panics; and schedules, bulk jobs and endpoints in the same condition. The loops that work on many leave such a
//! one alone for a while, longer each time, so that it stops no others and fills no log: one line when it is set
//! aside, one when it works again.
//!
//! [`Engine::one_of_many`] is the way through which every loop works on one. What it remembers is in memory only: after
//! a restart each is tried once more.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use interlock_core::ids::{JobId, OutboundId, OutboxId, RunId, ScheduleId, SlackId, TenantId};
use interlock_core::planted::{Bug, is_planted};
use interlock_core::text::panic::message_of;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::ReadError;

use crate::Engine;
use crate::error::EngineError;
use crate::payloads::PayloadError;

const FIRST_PAUSE: Millis = Millis::from_secs(1);
const LONGEST_PAUSE: Millis = Millis::from_mins(5);
/// How many are remembered; beyond that the one whose pause ends first is forgotten, and tried again.
pub const SET_ASIDE_MAX: usize = 10_000;
/// An item that no loop has tried again for so long has ended or is gone.
const FORGOTTEN_AFTER: Millis = Millis::from_hours(1);

/// What loops work on, one of many at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Run(RunId),
    Schedule(ScheduleId),
    BulkJob(JobId),
    Endpoint(OutboundId),
    Message(OutboxId),
    Slack(SlackId),
    /// A tenant's audit log.
    AuditLog,
    /// The evidence of a run that has ended.
    Evidence(RunId),
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Run(id) => write!(f, "run {id}"),
            Self::Schedule(id) => write!(f, "schedule {id}"),
            Self::BulkJob(id) => write!(f, "bulk job {id}"),
            Self::Endpoint(id) => write!(f, "webhook endpoint {id}"),
            Self::Message(id) => write!(f, "message {id}"),
            Self::Slack(id) => write!(f, "Slack connection {id}"),
            Self::AuditLog => f.write_str("the audit log"),
            Self::Evidence(id) => write!(f, "the evidence of run {id}"),
        }
    }
}

impl Item {
    /// The command that finds what is wrong with it.
    const fn told_by(self) -> &'static str {
        match self {
            Self::AuditLog => "interlock audit verify",
            Self::Evidence(_) => "interlock evidence export",
            _ => "interlock db check",
        }
    }
}

macro_rules! items {
    ($($id:ident => $item:ident),+) => {
        $(impl From<$id> for Item {
            fn from(id: $id) -> Self {
                Self::$item(id)
            }
        })+
    };
}
items!(RunId => Run, ScheduleId => Schedule, JobId => BulkJob, OutboundId => Endpoint, OutboxId => Message,
    SlackId => Slack);

/// One that cannot be worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemSetAside {
    pub tenant: TenantId,
    pub item: Item,
    pub error: String,
    pub since: Timestamp,
    /// When it is tried again.
    pub until: Timestamp,
    /// How often it was tried.
    pub tries: u32,
}

#[derive(Default)]
pub struct SetAside {
    items: Mutex<BTreeMap<(TenantId, Item), ItemSetAside>>,
    /// How many there are, so that the usual case takes no lock.
    count: AtomicUsize,
}

impl SetAside {
    fn items(&self) -> MutexGuard<'_, BTreeMap<(TenantId, Item), ItemSetAside>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    /// How many rows a loop reads more, so that what is set aside does not take the places of those behind it.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether to leave it alone for now.
    pub(crate) fn holds(&self, tenant: TenantId, item: impl Into<Item>, now: Timestamp) -> bool {
        !self.is_empty() && self.items().get(&(tenant, item.into())).is_some_and(|aside| now < aside.until)
    }

    /// It could not be worked on.
    pub(crate) fn failed(&self, tenant: TenantId, item: Item, error: &dyn std::fmt::Display, now: Timestamp) {
        let mut items = self.items();
        if let Some(aside) = items.get_mut(&(tenant, item)) {
            let pause = Millis((aside.until.since(aside.since).0 + FIRST_PAUSE.0).min(LONGEST_PAUSE.0));
            (aside.until, aside.error) = (now + pause, error.to_string());
            aside.tries += 1;
            tracing::debug!(%tenant, %item, %error, "it still cannot be worked on");
            return;
        }
        let told_by = item.told_by();
        tracing::error!(%tenant, %item, %error, "it cannot be worked on and is set aside; `{told_by}` says more");
        items.retain(|_, aside| now.since(aside.until) < FORGOTTEN_AFTER);
        if items.len() >= SET_ASIDE_MAX
            && let Some(first) = items.iter().min_by_key(|(_, aside)| aside.until).map(|(key, _)| *key)
        {
            items.remove(&first);
        }
        let (error, until) = (error.to_string(), now + FIRST_PAUSE);
        items.insert((tenant, item), ItemSetAside { tenant, item, error, since: now, until, tries: 1 });
        self.count.store(items.len(), Ordering::Relaxed);
    }

    /// It was worked on.
    pub(crate) fn worked(&self, tenant: TenantId, item: Item) {
        if self.is_empty() {
            return;
        }
        let mut items = self.items();
        if let Some(aside) = items.remove(&(tenant, item)) {
            self.count.store(items.len(), Ordering::Relaxed);
            tracing::info!(%tenant, %item, tries = aside.tries, "what was set aside can be worked on again");
        }
    }

    pub(crate) fn list(&self) -> Vec<ItemSetAside> {
        self.items().values().cloned().collect()
    }
}

/// What became of one of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemOutcome {
    Done,
    /// It is set aside, since now or since before.
    SetAside,
}

impl Engine {
    /// Works on one of many. What is wrong with this one alone, a panic too, sets it aside; what is wrong with the
    /// store, and so with all of them, is the caller's to deal with.
    pub(crate) fn one_of_many<'a>(
        &'a self,
        tenant: TenantId,
        item: impl Into<Item>,
        work: impl Future<Output = Result<(), EngineError>> + Send + 'a,
    ) -> impl Future<Output = Result<ItemOutcome, EngineError>> + Send + 'a {
        let (aside, item) = (&self.0.set_aside, item.into());
        // On the heap, or each of the many callers would be larger by all of it.
        let work = AssertUnwindSafe(Box::pin(work)).catch_unwind();
        async move {
            if aside.holds(tenant, item, self.now()) {
                return Ok(ItemOutcome::SetAside);
            }
            match work.await {
                Ok(Ok(())) => {
                    aside.worked(tenant, item);
                    Ok(ItemOutcome::Done)
                }
                Ok(Err(error)) if error.is_outage() || is_planted(Bug::UnreadableStopsLoops) => Err(error),
                Ok(Err(error)) => {
                    aside.failed(tenant, item, &error, self.now());
                    Ok(ItemOutcome::SetAside)
                }
                Err(panic) => {
                    aside.failed(tenant, item, &format!("a panic: {}", message_of(&*panic)), self.now());
                    Ok(ItemOutcome::SetAside)
                }
            }
        }
    }
}

impl EngineError {
    /// Whether rows of this very run are why, so that another run may well succeed.
    pub(crate) const fn is_of_its_rows(&self) -> bool {
        matches!(
            self,
            Self::Read(ReadError::Corrupt(_) | ReadError::Database(_))
                | Self::Store(_)
                | Self::Refused(_)
                | Self::Contended { .. }
                | Self::Payload(PayloadError::Missing { .. } | PayloadError::Altered { .. })
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn ids(number: u128) -> (TenantId, Item) {
        (TenantId(Uuid::from_u128(1)), RunId(Uuid::from_u128(number)).into())
    }

    #[test]
    fn a_run_is_left_alone_longer_each_time() {
        let aside = SetAside::default();
        let (tenant, run) = ids(1);
        let mut now = Timestamp(1_000_000);
        let mut pauses = Vec::new();
        for _ in 0..12 {
            aside.failed(tenant, run, &"no", now);
            let until = aside.list()[0].until;
            pauses.push(until.since(now).0);
            assert!(aside.holds(tenant, run, now));
            now = until;
            assert!(!aside.holds(tenant, run, now));
        }
        assert!(pauses.is_sorted(), "{pauses:?}");
        assert_eq!((pauses[0], pauses[11]), (FIRST_PAUSE.0, LONGEST_PAUSE.0));
        aside.worked(tenant, run);
        assert!(aside.is_empty() && aside.list().is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let aside = SetAside::default();
        for number in 0..SET_ASIDE_MAX as u128 + 10 {
            let (tenant, run) = ids(number);
            aside.failed(tenant, run, &"no", Timestamp(number as i64));
        }
        assert_eq!(aside.count(), SET_ASIDE_MAX);
    }
}
