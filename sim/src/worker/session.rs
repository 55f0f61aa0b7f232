//! One registration: the lease as the worker sees it, what it holds, heartbeats and polls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::SessionId;
use interlock_core::time::Millis;
use interlock_core::work::{AttemptRef, EFFECTS, WorkerHello};
use interlock_engine::EngineError;
use interlock_engine::sessions::Registered;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::attempt::{self, HandedStep};
use super::{LifeEnd, Worker};
use crate::network::{CallError, Caller, PATIENCE};
use crate::trace::say;

/// How much of the lease must be left for an effect to be sent.
pub const SEND_MARGIN: Millis = Millis(2_500);

pub struct Session {
    pub id: SessionId,
    lease: Millis,
    renew_every: Duration,
    state: Mutex<SessionState>,
    gone: Notify,
}

struct SessionState {
    lease_until: Instant,
    held: BTreeMap<AttemptRef, HeldAttempt>,
    draining: bool,
}

#[derive(Default)]
struct HeldAttempt {
    stopped: bool,
}

impl Session {
    fn state<T>(&self, look: impl FnOnce(&mut SessionState) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes an attempt; false if it is held already, because its answer came twice.
    pub fn hold(&self, at: AttemptRef) -> bool {
        self.state(|state| state.held.insert(at, HeldAttempt::default()).is_none())
    }

    pub fn let_go(&self, at: AttemptRef) {
        self.state(|state| state.held.remove(&at));
    }

    pub fn is_stopped(&self, at: AttemptRef) -> bool {
        self.state(|state| state.held.get(&at).is_none_or(|held| held.stopped))
    }

    pub fn is_draining(&self) -> bool {
        self.state(|state| state.draining)
    }

    pub fn holds_lease(&self) -> bool {
        self.state(|state| Instant::now() < state.lease_until)
    }

    /// Whether an effect that starts now is surely still this session's while its first bytes go out.
    pub fn covers_a_send(&self) -> bool {
        self.state(|state| Instant::now() + SEND_MARGIN.as_duration() <= state.lease_until)
    }

    fn held(&self) -> Vec<AttemptRef> {
        self.state(|state| state.held.keys().copied().collect())
    }

    fn stop(&self, at: AttemptRef) {
        self.state(|state| {
            if let Some(held) = state.held.get_mut(&at) {
                held.stopped = true;
            }
        });
    }
}

/// Registers and works until the session is lost or drained.
pub(super) async fn serve(worker: &Arc<Worker>, life: &mut JoinSet<()>) -> LifeEnd {
    let session = register(worker).await;
    let mut beating = JoinSet::new();
    beating.spawn(beat(Arc::clone(worker), Arc::clone(&session)));
    tokio::select! {
        biased;
        () = session.gone.notified() => LifeEnd::Gone,
        () = poll(worker, &session, life) => LifeEnd::Gone,
        () = drain(worker, &session) => LifeEnd::Shutdown,
    }
}

async fn register(worker: &Arc<Worker>) -> Arc<Session> {
    let Caller { sim, dice, .. } = &worker.caller;
    loop {
        worker.gate.pass().await;
        let hello = WorkerHello {
            worker: worker.name.clone(),
            tenant: worker.tenant,
            queues: worker.queues.clone(),
            slots: worker.slots,
            build_id: None,
            tasks: None,
            capabilities: worker.names_effects.then(|| vec![EFFECTS.into()]),
            environments: None,
            labels: BTreeMap::new(),
        };
        let sent_at = Instant::now();
        let registered = worker
            .caller
            .call(PATIENCE, move |engine| {
                let hello = hello.clone();
                async move { engine.workers().register(hello).await }
            })
            .await;
        worker.gate.pass().await;
        match registered {
            Ok(Registered { session, lease, renew_every, .. }) => {
                sim.tally.count("sessions");
                say!(sim, &worker.name, "registered as {session}");
                return Arc::new(Session {
                    id: session,
                    lease,
                    renew_every: renew_every.as_duration(),
                    state: Mutex::new(SessionState {
                        lease_until: sent_at + lease.as_duration(),
                        held: BTreeMap::new(),
                        draining: false,
                    }),
                    gone: Notify::new(),
                });
            }
            Err(error) if error.is_transient() => sleep(dice.millis(100..=1_000)).await,
            Err(error) => sim.broken(format!("a worker was not registered: {error}")),
        }
    }
}

/// Renews the lease, and stops what the engine wants stopped.
async fn beat(worker: Arc<Worker>, session: Arc<Session>) {
    let mut next = session.renew_every;
    loop {
        sleep(next).await;
        worker.gate.pass().await;
        let sent_at = Instant::now();
        let (id, held, draining) = (session.id, session.held(), session.is_draining());
        let beat = worker
            .caller
            .call(session.renew_every, move |engine| {
                let held = held.clone();
                async move { engine.workers().heartbeat(id, &held, draining).await }
            })
            .await;
        worker.gate.pass().await;
        match beat {
            Ok(stop) => {
                session.state(|state| state.lease_until = sent_at + session.lease.as_duration());
                for at in stop {
                    say!(worker.caller.sim, &worker.name, "is told to stop {at:?}");
                    session.stop(at);
                }
                next = session.renew_every;
            }
            Err(CallError::Refused(EngineError::SessionGone)) => return session.gone.notify_one(),
            Err(_) => next = Duration::from_millis(500),
        }
    }
}

/// Takes as much as fits; returns when the engine no longer knows the session.
async fn poll(worker: &Arc<Worker>, session: &Arc<Session>, life: &mut JoinSet<()>) {
    let Caller { sim, dice, .. } = &worker.caller;
    loop {
        worker.gate.pass().await;
        while life.try_join_next().is_some() {}
        let free = (worker.slots as usize).saturating_sub(session.held().len());
        if free == 0 || session.is_draining() {
            sleep(Duration::from_millis(100)).await;
            continue;
        }
        let (id, wait) = (session.id, dice.millis(200..=4_000));
        let polled = worker
            .caller
            .call(wait + PATIENCE, move |engine| async move { engine.workers().poll(id, free, wait).await });
        let polled = polled.await;
        let world = sim.archive.restores();
        worker.gate.pass().await;
        match polled {
            Ok(assignments) => {
                if assignments.len() > free {
                    sim.broken(format!("a poll for {free} steps was given {}", assignments.len()));
                }
                if assignments.is_empty() {
                    sleep(Duration::from_millis(20)).await;
                }
                for assignment in assignments {
                    take(worker, session, life, HandedStep { assignment, world });
                }
            }
            Err(CallError::Refused(EngineError::SessionGone)) => return,
            Err(error) => {
                if !error.is_transient() {
                    sim.broken(format!("a poll was refused: {error}"));
                }
                sleep(dice.millis(50..=800)).await;
            }
        }
    }
}

fn take(worker: &Arc<Worker>, session: &Arc<Session>, life: &mut JoinSet<()>, handed: HandedStep) {
    if let Err(what) = attempt::check(worker, session.id, &handed) {
        return worker.caller.sim.broken(what);
    }
    if session.hold(handed.assignment.at) {
        life.spawn(attempt::work(Arc::clone(worker), Arc::clone(session), handed));
    }
}

/// Now and then a worker is shut down in good order.
async fn drain(worker: &Arc<Worker>, session: &Arc<Session>) {
    let Caller { sim, dice, .. } = &worker.caller;
    loop {
        sleep(dice.millis(6_000..=20_000)).await;
        if !sim.is_calm() && dice.one_in(6) {
            break;
        }
    }
    session.state(|state| state.draining = true);
    say!(sim, &worker.name, "drains");
    for _ in 0..20 {
        if session.held().is_empty() {
            break;
        }
        sleep(Duration::from_millis(200)).await;
    }
    let id = session.id;
    for _ in 0..3 {
        worker.gate.pass().await;
        if worker
            .caller
            .call(PATIENCE, move |engine| async move { engine.workers().unregister(id).await })
            .await
            .is_ok()
        {
            return;
        }
    }
}
