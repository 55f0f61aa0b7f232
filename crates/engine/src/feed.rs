//! The feed: a watcher of a run, or of a tenant, is woken after each commit and reads what is new from the store. Since
//! everything is read by its dense `seq`, nothing can be missed and nothing comes twice.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::rejection::Rejection;
use interlock_core::state::RunState;
use interlock_store::EventRecord;
use interlock_store::TenantEvent;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use crate::Engine;
use crate::error::EngineError;
use crate::parts::Events;

/// How long a watcher sleeps at most before it looks by itself: the bound on what a lost wake-up costs.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many events one read takes.
pub const EVENTS_READ_MAX: usize = 500;

#[derive(Default)]
pub struct Feed {
    /// Ordered, so that watchers are woken in an order that a simulation can repeat.
    watched: Mutex<BTreeMap<Topic, Arc<Watched>>>,
    /// The callers that wait for a run to end.
    endings: Mutex<HashMap<RunId, Vec<oneshot::Sender<RunState>>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Run(TenantId, RunId),
    Tenant(TenantId),
    /// What the steps of a run write.
    Output(TenantId, RunId),
}

#[derive(Default)]
pub(crate) struct Watched {
    news: Notify,
}

impl Watched {
    pub fn news(&self) -> Notified<'_> {
        self.news.notified()
    }
}

impl Feed {
    /// Wakes the watchers of the run. The tenant's watchers see nothing of it before it is sealed.
    pub(crate) fn publish(&self, tenant: TenantId, run: RunId) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // Watchers of a step's output are woken when the step has ended.
        for topic in [Topic::Run(tenant, run), Topic::Output(tenant, run)] {
            if let Some(watched) = watched.get(&topic) {
                watched.news.notify_waiters();
            }
        }
    }

    /// Wakes the watchers of the output of the run's steps.
    pub(crate) fn publish_output(&self, tenant: TenantId, run: RunId) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = watched.get(&Topic::Output(tenant, run)) {
            watched.news.notify_waiters();
        }
    }

    /// Wakes the watchers of whole tenants: something was sealed.
    pub(crate) fn publish_sealed(&self) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        for (topic, watched) in watched.iter() {
            if matches!(topic, Topic::Tenant(_)) {
                watched.news.notify_waiters();
            }
        }
    }

    /// Wakes all watchers: another server has committed something.
    pub(crate) fn publish_all(&self) {
        for watched in self.watched.lock().unwrap_or_else(PoisonError::into_inner).values() {
            watched.news.notify_waiters();
        }
    }

    /// Tells the callers that wait for it that a run has ended.
    pub(crate) fn ended(&self, run: RunId, state: RunState) {
        let waiting = {
            let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
            if endings.is_empty() {
                return;
            }
            endings.remove(&run)
        };
        for waiter in waiting.into_iter().flatten() {
            // A waiter that has gone away needs no answer.
            let _ = waiter.send(state);
        }
    }

    pub(crate) fn when_ended(&self, run: RunId) -> oneshot::Receiver<RunState> {
        let (tell, told) = oneshot::channel();
        let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = endings.entry(run).or_default();
        waiting.retain(|waiter| !waiter.is_closed());
        waiting.push(tell);
        told
    }

    pub(crate) fn join(&self, topic: Topic) -> Arc<Watched> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(watched.entry(topic).or_default())
    }

    pub(crate) fn leave(&self, topic: Topic, mine: &Arc<Watched>) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // One reference is the map's, one is the leaver's.
        if Arc::strong_count(mine) <= 2 {
            watched.remove(&topic);
        }
    }
}

/// Follows one run, or a whole tenant, from a cursor on.
pub struct Watcher {
    engine: Engine,
    topic: Topic,
    watched: Arc<Watched>,
    cursor: u64,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.engine.0.feed.leave(self.topic, &self.watched);
    }
}

impl Watcher {
    /// The cursor after the last event handed out, and after those that retention has removed behind it.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The run's next events; waits for them.
    #[boxed]
    pub async fn next_of_run(&mut self) -> Result<Vec<EventRecord>, EngineError> {
        let Topic::Run(tenant, run) = self.topic else { return Ok(Vec::new()) };
        loop {
            let news = self.watched.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let events = self.engine.0.store.events(tenant, run, self.cursor, EVENTS_READ_MAX).await?;
            if let Some(last) = events.last() {
                self.cursor = last.seq;
                return Ok(events);
            }
            tokio::select! {
                biased;
                () = self.engine.0.stopping.cancelled() => return Err(EngineError::Closed),
                () = news => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// The tenant's next sealed events; waits for them.
    #[boxed]
    pub async fn next_of_tenant(&mut self) -> Result<Vec<TenantEvent>, EngineError> {
        let (Topic::Tenant(tenant) | Topic::Run(tenant, _) | Topic::Output(tenant, _)) = self.topic;
        loop {
            let news = self.watched.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let page = self.engine.0.store.tenant_events(tenant, self.cursor, EVENTS_READ_MAX).await?;
            let moved = page.cursor > self.cursor;
            self.cursor = page.cursor;
            if !page.events.is_empty() {
                return Ok(page.events);
            }
            // All of that has been swept: what comes behind it may not be.
            if moved {
                continue;
            }
            tokio::select! {
                biased;
                () = self.engine.0.stopping.cancelled() => return Err(EngineError::Closed),
                () = news => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}

impl Events {
    /// Follows a run from the event after `cursor`.
    pub fn watch_run(&self, tenant: TenantId, run: RunId, cursor: u64) -> Watcher {
        self.watch(Topic::Run(tenant, run), cursor)
    }

    /// Follows all runs of a tenant, in the order the sealer gave their events.
    pub fn watch_tenant(&self, tenant: TenantId, cursor: u64) -> Watcher {
        self.watch(Topic::Tenant(tenant), cursor)
    }

    /// Waits until a run has ended, here or on another server.
    #[boxed]
    pub async fn wait_for_end(&self, tenant: TenantId, run: RunId) -> Result<RunState, EngineError> {
        let mut told = self.0.0.feed.when_ended(run);
        loop {
            let summary = self.0.0.store.run_overview(tenant, run).await?.ok_or(Rejection::UnknownRun { run })?;
            if summary.state.is_terminal() {
                return Ok(summary.state);
            }
            tokio::select! {
                biased;
                () = self.0.0.stopping.cancelled() => return Err(EngineError::Closed),
                state = &mut told => match state {
                    Ok(state) => return Ok(state),
                    Err(_) => told = self.0.0.feed.when_ended(run),
                },
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    fn watch(&self, topic: Topic, cursor: u64) -> Watcher {
        Watcher { watched: self.0.0.feed.join(topic), engine: self.0.clone(), topic, cursor }
    }
}
