//! A machine that an engine runs on: opens it on the database, kills it, opens the next one. The database outlives
//! them all, as a disk would. [`crate::hosts`] has all machines of a world.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use interlock_core::ids::ServerId;
use interlock_core::time::{Millis, Timestamp};
use interlock_engine::clock::Clock;
use interlock_engine::dispatch::Pressure;
use interlock_engine::ids::IdSource;
use interlock_engine::payloads::PayloadOptions;
use interlock_engine::vault::Vault;
use interlock_engine::{Engine, EngineOptions};
use interlock_outbound::Outbound;
use interlock_store::{Mode, Options, Store, StoreUrl, Sweep};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::courier::Courier;
use crate::dice::Dice;
use crate::faults::StoreFaults;
use crate::quiet;
use crate::sim::Sim;
use crate::trace::say;
use crate::triggers::receivers::Wire;

/// Where the simulated clocks start: some day in 2024.
pub const EPOCH: Timestamp = Timestamp(1_720_000_000_000);
pub const LEASE: Millis = Millis(10_000);
pub const RENEWAL: Millis = Millis(2_500);
/// How long after the end of a lease an effect may still happen.
pub const EFFECT_SETTLES_AFTER: Millis = Millis::from_secs(5);
/// Where outputs are put aside, those that are padded are.
pub const INLINE_MAX: usize = 500;
/// How many ready runs of a group fit into memory where orders come all at once.
const READY_MAX: usize = 4;
/// How long ended runs stay where they are swept: the checks look more often than that.
const RUNS_KEPT: Millis = Millis::from_secs(6);
/// How long a shutdown in good order may take, with a slow store and a caller that polls.
const STOP_MAX: Duration = Duration::from_mins(2);

pub struct Host {
    /// Its place among the world's hosts.
    number: usize,
    /// The name of the database in memory.
    database: String,
    began: Instant,
    /// How far the machine's wall clock is off.
    skew_ms: Mutex<i64>,
    /// The clock of the engine that runs, or is about to: it follows the machine's.
    clock: Mutex<Option<Clock>>,
    life: Mutex<Option<Life>>,
    lives: AtomicU64,
    crash: Notify,
    /// The next end is one in good order, unless the process is doomed.
    gently: AtomicBool,
    /// The process has died, and its supervisor has not seen it yet.
    doomed: AtomicBool,
}

/// One process.
struct Life {
    engine: Engine,
    /// Requests that it is serving; they die with it.
    serving: JoinSet<()>,
    over: Arc<AtomicBool>,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => f.write_str("host"),
            number => write!(f, "host {number}"),
        }
    }
}

impl Host {
    /// A machine whose clock is off by so much.
    pub fn new(number: usize, database: &str, skew_ms: i64) -> Self {
        Self {
            number,
            database: database.to_owned(),
            began: Instant::now(),
            skew_ms: Mutex::new(skew_ms),
            clock: Mutex::default(),
            life: Mutex::default(),
            lives: AtomicU64::new(0),
            crash: Notify::new(),
            gently: AtomicBool::new(false),
            doomed: AtomicBool::new(false),
        }
    }

    fn life<T>(&self, look: impl FnOnce(&mut Option<Life>) -> T) -> T {
        look(&mut self.life.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn lives(&self) -> u64 {
        self.lives.load(Ordering::Relaxed)
    }

    /// The engine, while it is up.
    pub fn engine(&self) -> Option<Engine> {
        self.life(|life| life.as_ref().map(|life| life.engine.clone()))
    }

    /// The time on the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.engine().map_or_else(|| self.wall_clock(), |engine| engine.now())
    }

    fn wall_clock(&self) -> Timestamp {
        let elapsed = self.began.elapsed().as_millis() as i64;
        Timestamp(EPOCH.0 + elapsed + *self.skew_ms.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the machine's clock forward or back.
    pub fn jump(&self, by_ms: i64) {
        *self.skew_ms.lock().unwrap_or_else(PoisonError::into_inner) += by_ms;
        if let Some(clock) = &*self.clock.lock().unwrap_or_else(PoisonError::into_inner) {
            clock.adjust(by_ms);
        }
    }

    /// Serves a request in the process that runs now, if any; it is dropped when the process dies.
    pub fn serve(&self, serving: impl FnOnce(Engine) -> BoxFuture<'static, ()>) -> bool {
        self.life(|life| {
            let Some(life) = life else { return false };
            while life.serving.try_join_next().is_some() {}
            life.serving.spawn(serving(life.engine.clone()));
            true
        })
    }

    pub fn ask_to_crash(&self) {
        self.doomed.store(true, Ordering::Relaxed);
        self.crash.notify_one();
    }

    /// Asks for a shutdown in good order, as before an upgrade.
    pub fn ask_to_stop(&self) {
        self.gently.store(true, Ordering::Relaxed);
        self.crash.notify_one();
    }

    /// Opens the engine, and again after every crash, until the simulation is over.
    pub async fn run(&self, sim: &Arc<Sim>, dice: Dice) {
        loop {
            let over = Arc::new(AtomicBool::new(false));
            self.doomed.store(false, Ordering::Relaxed);
            tokio::select! {
                biased;
                () = self.crash.notified() => over.store(true, Ordering::Relaxed),
                () = self.open(sim, &dice, &over) => self.crash.notified().await,
            }
            if self.gently.swap(false, Ordering::Relaxed) && !self.doomed.load(Ordering::Relaxed) {
                self.stop(sim).await;
            } else {
                self.kill(sim);
            }
            sleep(dice.millis(0..=4_000)).await;
            if sim.archive.is_asked() {
                Box::pin(sim.hosts.restore(sim, self.number, (&dice, self.options(sim, &dice)))).await;
            }
        }
    }

    async fn open(&self, sim: &Arc<Sim>, dice: &Dice, over: &Arc<AtomicBool>) {
        let number = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        let weather = StoreFaults {
            sim: Arc::clone(sim),
            host: self.number,
            dice: dice.fork(),
            over: Arc::clone(over),
            commits: AtomicU64::new(0),
            reads: Mutex::default(),
        };
        let mut options = self.options(sim, dice);
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(options.clock.clone());
        let mut store_options = Options::new(ServerId(options.ids.fresh()));
        store_options.mode = Mode::Inline(Arc::new(weather));
        store_options.group_max = *dice.pick(&[1, 3, 64]);
        store_options.queue_max = *dice.pick(&[1, 16, 10_000]);
        store_options.priority_lane = sim.swarm.quiet;
        let url = StoreUrl::SqliteMemory(self.database.clone());
        let store = match Store::open(&url, store_options).await {
            Ok(store) => store,
            Err(error) => return sim.broken(format!("the store does not open again: {error}")),
        };
        let killed = store.clone();
        if sim.swarm.has_triggers() {
            options = equipped(options, sim, dice);
        }
        match Engine::open(store, options).await {
            Ok(engine) => {
                say!(sim, self, "engine {number} is up");
                let life = Life { engine, serving: JoinSet::new(), over: Arc::clone(over) };
                self.life(|current| *current = Some(life));
                sim.hosts.tell_up();
            }
            Err(error) => {
                killed.kill();
                sim.broken(format!("the engine does not open again: {error}"));
            }
        }
    }

    pub fn options(&self, sim: &Arc<Sim>, dice: &Dice) -> EngineOptions {
        let courier = Courier { sim: Arc::clone(sim), dice: dice.fork() };
        let mut options = EngineOptions::new(Arc::new(courier));
        options.clock = Clock::starting_at(self.wall_clock());
        options.ids = IdSource::seeded(options.clock.clone(), dice.between(0..=u64::MAX));
        options.session_lease = LEASE;
        options.session_renewal = RENEWAL;
        options.effect_settles_after = EFFECT_SETTLES_AFTER;
        options.reap_every = Millis(1_000);
        options.scan_every = Millis(1_000);
        options.seal_every = Millis(200);
        options.cells_max = sim.swarm.cells;
        options.expressions_in_place = true;
        if sim.swarm.rush {
            options.ready_max = READY_MAX;
        }
        if sim.swarm.quiet {
            options.busy_from_places = quiet::BUSY_FROM_PLACES;
        }
        if sim.swarm.payloads {
            let place = PayloadOptions::new(sim.objects.clone());
            options.payloads = Some(PayloadOptions { inline_max: INLINE_MAX, ..place });
        }
        if sim.swarm.retention {
            options.sweep_every = Millis(1_500);
            options.retention = Some(Sweep { runs_kept: Some(RUNS_KEPT), batch_max: 3, ..Sweep::new(EPOCH) });
        }
        options
    }

    /// Ends the process in good order: what it was asked before is answered.
    async fn stop(&self, sim: &Sim) {
        let Some(mut life) = self.life(Option::take) else { return };
        count_pressure(sim, &life.engine);
        say!(sim, self, "engine {} stops", self.lives());
        sim.tally.count("engines stopped in good order");
        let finishing = async {
            life.engine.stop().await;
            while life.serving.join_next().await.is_some() {}
            life.engine.store().clone().close().await;
        };
        let finished = tokio::select! {
            biased;
            // It dies on its way out.
            () = self.crash.notified() => None,
            finished = timeout(STOP_MAX, finishing) => Some(finished),
        };
        match finished {
            Some(Ok(())) => life.over.store(true, Ordering::Relaxed),
            Some(Err(_)) => sim.broken(format!("P8: the engine has not stopped after {STOP_MAX:?}")),
            None => {
                self.life(|slot| *slot = Some(life));
                self.kill(sim);
            }
        }
    }

    /// Ends the process as a power cut would.
    fn kill(&self, sim: &Sim) {
        let Some(mut life) = self.life(Option::take) else { return };
        life.over.store(true, Ordering::Relaxed);
        count_pressure(sim, &life.engine);
        life.serving.abort_all();
        life.engine.store().kill();
        say!(sim, self, "engine {} is dead", self.lives());
        let engine = life.engine;
        // Its loops have nothing left to read or to write; this lets the tasks end that are not stuck on that.
        tokio::spawn(async move { engine.stop().await });
    }
}

/// What the bounds of dispatch have done in an engine's life, and what quiet tenants have committed.
pub fn count_pressure(sim: &Sim, engine: &Engine) {
    let Pressure { places_kept, overflows } = engine.health().pressure();
    sim.tally.add("polls that kept a place", places_kept);
    sim.tally.add("ready runs that did not fit", overflows);
    sim.tally.add("change sets by the priority lane", engine.store().priority_sets_committed());
}

/// With the key of an engine's secrets and a way to the outside.
pub fn equipped(options: EngineOptions, sim: &Arc<Sim>, dice: &Dice) -> EngineOptions {
    let wire = Wire { sim: Arc::clone(sim), dice: dice.fork() };
    let (vault, outbound) = (Vault::new(&[1; 32]), Outbound::over(Arc::new(wire)));
    EngineOptions { vault: Some(vault), outbound: Some(outbound), ..options }
}
