//! What a seed does to the store: commits that are slow, lost, or lost after they happened, and crashes right at
//! their boundaries. After every commit the claims are checked, before any caller is told of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use interlock_store::{CommitFault, Faults};
use tokio::time::sleep;

use crate::dice::Dice;
use crate::sim::Sim;
use crate::swarm::Fault;
use crate::trace::say;

/// The store's faults for one life of the engine.
pub struct StoreFaults {
    pub sim: Arc<Sim>,
    /// The machine it runs on.
    pub host: usize,
    pub dice: Dice,
    /// Set once this life is over: whatever its tasks still try to do has no effect.
    pub over: Arc<AtomicBool>,
    pub commits: AtomicU64,
    pub reads: Mutex<ReadsOfSecond>,
}

/// How often an engine has read the store within the current second.
#[derive(Default)]
pub struct ReadsOfSecond {
    second: u64,
    reads: u64,
    /// Commits of all servers before this second, and before the one before it.
    commits: [u64; 2],
}

/// What the loops of an engine and its callers read within a second while nothing happens, and what is read for each
/// commit of any server: its scan, timers, feeds and watchers look at what is new. An engine that reads more often goes
/// round in circles.
const IDLE_READS_MAX: u64 = 400;
const READS_OF_COMMIT_MAX: u64 = 30;

impl StoreFaults {
    /// Dies here: asks to be killed and never comes back.
    async fn crash(sim: Arc<Sim>, host: usize, fault: Fault) -> CommitFault {
        sim.tally.count(fault.name());
        say!(sim, sim.hosts.at(host), "{}", fault.name());
        sim.hosts.at(host).ask_to_crash();
        std::future::pending().await
    }
}

impl StoreFaults {
    fn count_read(&self) {
        let second = self.sim.trace.elapsed() / 1_000;
        let mut of_second = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if of_second.second != second {
            let commits = [self.sim.tally.of("commits"), of_second.commits[0]];
            *of_second = ReadsOfSecond { second, reads: 0, commits };
        }
        of_second.reads += 1;
        let (reads, before) = (of_second.reads, of_second.commits[1]);
        drop(of_second);
        self.sim.tally.most("most reads within a second", reads);
        if reads <= IDLE_READS_MAX {
            return;
        }
        let commits = self.sim.tally.of("commits") - before;
        let of_commit = (reads - IDLE_READS_MAX) / commits.max(1);
        self.sim.tally.most("most reads within a second for one commit", of_commit);
        if of_commit > READS_OF_COMMIT_MAX {
            let what = format!("an engine has read the store {reads} times within a second, after {commits} commits");
            self.sim.broken(what);
        }
    }
}

impl Faults for StoreFaults {
    fn before_commit(&self, _group: u64) -> BoxFuture<'static, CommitFault> {
        let (sim, host, dice) = (Arc::clone(&self.sim), self.host, self.dice.clone());
        self.commits.fetch_add(1, Ordering::Relaxed);
        async move {
            if sim.fires(Fault::SlowStore, &dice) {
                let long = dice.one_in(20);
                sleep(dice.millis(if long { 2_000..=12_000 } else { 1..=300 })).await;
            }
            if sim.strikes(Fault::CrashBeforeCommit, &dice) {
                return Self::crash(sim, host, Fault::CrashBeforeCommit).await;
            }
            if sim.fires(Fault::LostBeforeCommit, &dice) {
                return CommitFault::Lost;
            }
            CommitFault::None
        }
        .boxed()
    }

    fn after_commit(&self, _group: u64) -> BoxFuture<'static, CommitFault> {
        let (sim, host, dice) = (Arc::clone(&self.sim), self.host, self.dice.clone());
        async move {
            sim.tally.count("commits");
            sim.look_at_claims().await;
            if sim.strikes(Fault::CrashAfterCommit, &dice) {
                return Self::crash(sim, host, Fault::CrashAfterCommit).await;
            }
            if sim.fires(Fault::CommitUnknown, &dice) {
                return CommitFault::Lost;
            }
            CommitFault::None
        }
        .boxed()
    }

    fn before_read(&self) -> BoxFuture<'static, ()> {
        if self.over.load(Ordering::Relaxed) {
            // A dead process reads nothing more.
            return std::future::pending().boxed();
        }
        self.count_read();
        if self.sim.fires(Fault::SlowReads, &self.dice) {
            return sleep(self.dice.millis(1..=400)).boxed();
        }
        std::future::ready(()).boxed()
    }
}
