//! Simulated workers: processes that register, poll, work and report through a bad network, are stopped for longer
//! than their lease and come back, crash and start again, drain in good order.

mod agent;
mod attempt;
mod effect;
mod session;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use interlock_core::ids::TenantId;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::network::Caller;
use crate::swarm::Fault;
use crate::trace::say;

/// A worker process, over all its lives.
pub struct Worker {
    pub name: String,
    /// The tenant it serves; all of them where there is none.
    pub tenant: Option<TenantId>,
    pub queues: Vec<String>,
    pub slots: u32,
    /// The worker crate itself runs it; else a worker that another language may have.
    pub is_agent: bool,
    /// It asks before each effect. Else an unsafe step counts as an effect from the claim on.
    pub names_effects: bool,
    pub caller: Caller,
    pub gate: Gate,
    pub die: Notify,
}

/// While it is shut the process stands still: nothing is sent, and what arrives is not looked at.
pub struct Gate(Mutex<Instant>);

impl Default for Gate {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Gate {
    fn opens_at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn pass(&self) {
        while self.opens_at() > Instant::now() {
            sleep_until(self.opens_at()).await;
        }
    }

    fn shut_for(&self, span: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + span;
    }

    /// Opens it for good.
    pub fn open(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// How a life ended.
enum LifeEnd {
    Crash,
    /// Drained and unregistered.
    Shutdown,
    /// The engine has forgotten the session.
    Gone,
}

impl Worker {
    /// Lives again and again, until the simulation is over.
    pub async fn run(self: Arc<Self>) {
        let Caller { sim, dice, .. } = &self.caller;
        loop {
            // Attempts outlive the session they were claimed in, as they would in a process that was stopped for a
            // while; they do not outlive the process.
            let mut life = JoinSet::new();
            let ended = loop {
                tokio::select! {
                    biased;
                    () = self.crash() => break LifeEnd::Crash,
                    ended = self.serve(&mut life) => match ended {
                        LifeEnd::Gone => {
                            sim.tally.count("sessions lost");
                            say!(sim, &self.name, "the session is gone");
                        }
                        other => break other,
                    },
                }
            };
            drop(life);
            match ended {
                LifeEnd::Crash => {
                    sim.tally.count(Fault::WorkerCrash.name());
                    say!(sim, &self.name, "crashed");
                }
                LifeEnd::Shutdown => sim.tally.count("workers drained"),
                LifeEnd::Gone => {}
            }
            sleep(dice.millis(0..=3_000)).await;
        }
    }

    async fn serve(self: &Arc<Self>, life: &mut JoinSet<()>) -> LifeEnd {
        if self.is_agent { agent::live(self).await } else { session::serve(self, life).await }
    }

    /// Returns when the process crashes: at any time, or where it hurts.
    async fn crash(&self) {
        let Caller { sim, dice, .. } = &self.caller;
        let at_any_time = async {
            loop {
                sleep(dice.millis(4_000..=12_000)).await;
                if sim.strikes(Fault::WorkerCrash, dice) {
                    return;
                }
            }
        };
        tokio::select! {
            biased;
            () = self.die.notified() => {}
            () = at_any_time => {}
        }
    }

    /// The most delicate moment of an attempt: what can go wrong with a process goes wrong here more often.
    pub async fn delicate(&self) {
        let Caller { sim, dice, .. } = &self.caller;
        if dice.one_in(8) && sim.strikes(Fault::WorkerCrash, dice) {
            self.die.notify_one();
            return std::future::pending().await;
        }
        if dice.one_in(if sim.swarm.hasty { 3 } else { 8 }) && sim.fires(Fault::WorkerPaused, dice) {
            self.gate.shut_for(dice.millis(4_000..=25_000));
        }
        self.gate.pass().await;
    }

    /// Stops the process now and then.
    pub async fn stand_still(self: Arc<Self>) {
        let Caller { sim, dice, .. } = &self.caller;
        loop {
            sleep(dice.millis(2_000..=10_000)).await;
            if sim.fires(Fault::WorkerPaused, dice) {
                let span = dice.millis(if dice.one_in(2) { 100..=4_000 } else { 8_000..=30_000 });
                say!(sim, &self.name, "stands still for {} ms", span.as_millis());
                self.gate.shut_for(span);
            }
        }
    }
}
