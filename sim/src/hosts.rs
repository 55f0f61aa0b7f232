//! The machines of a world: one, or several that run engines on one database as servers on one PostgreSQL do. Their clocks
//! differ by as much as is tolerated. Requests reach whichever is up, so that what one engine began another one goes on
//! with.

use std::sync::Arc;

use futures::future::BoxFuture;
use interlock_core::ids::ServerId;
use interlock_core::time::Timestamp;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{Mode, NoFaults, Options, Store, StoreUrl};
use tokio::sync::{Barrier, Notify};
use uuid::Uuid;

use crate::dice::Dice;
use crate::host::Host;
use crate::sim::Sim;

pub struct Hosts {
    /// The name of the database in memory.
    database: String,
    all: Vec<Host>,
    up: Notify,
    /// All of them meet here, with their engines down, before and after the database is replaced.
    restore: Barrier,
}

/// Which machine a caller talks to.
#[derive(Debug, Clone, Copy)]
pub enum Route {
    /// A load balancer picks one for each request.
    Any,
    /// Always this one, while it is up.
    Host(usize),
}

impl Hosts {
    /// As many machines as there are clocks, each off by so much.
    pub fn new(database: &str, skews_ms: &[i64]) -> Self {
        let all = skews_ms.iter().enumerate().map(|(number, skew_ms)| Host::new(number, database, *skew_ms));
        Self {
            database: database.to_owned(),
            all: all.collect(),
            up: Notify::new(),
            restore: Barrier::new(skews_ms.len()),
        }
    }

    /// A second look at the database, past all faults.
    pub async fn open_for_checks(&self) -> Store {
        let mut options = Options::new(ServerId(Uuid::from_u128(0xc4ec)));
        options.mode = Mode::Inline(Arc::new(NoFaults));
        let url = StoreUrl::SqliteMemory(self.database.clone());
        Store::open(&url, options).await.unwrap_or_else(|error| panic!("the database opens: {error}"))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.all.iter()
    }

    pub fn at(&self, number: usize) -> &Host {
        &self.all[number]
    }

    /// One of them. Where there is only one, no dice are thrown.
    pub fn pick(&self, dice: &Dice) -> usize {
        if self.all.len() == 1 { 0 } else { dice.between(0..=self.all.len() as u64 - 1) as usize }
    }

    /// How a new caller reaches them.
    pub fn route(&self, dice: &Dice) -> Route {
        if self.all.len() == 1 || dice.one_in(2) { Route::Any } else { Route::Host(self.pick(dice)) }
    }

    /// The one that a request goes to: the wanted one, or the next that is up.
    fn reached(&self, route: Route, dice: &Dice) -> Option<&Host> {
        let wanted = match route {
            Route::Any => self.pick(dice),
            Route::Host(number) => number,
        };
        let in_turn = self.all.iter().cycle().skip(wanted).take(self.all.len());
        in_turn.into_iter().find(|host| host.engine().is_some())
    }

    /// Serves a request in a process that is up, if any is.
    pub fn serve(&self, (route, dice): (Route, &Dice), serving: impl FnOnce(Engine) -> BoxFuture<'static, ()>) -> bool {
        self.reached(route, dice).is_some_and(|host| host.serve(serving))
    }

    /// Waits for an engine.
    pub async fn reach(&self, dice: &Dice) -> Engine {
        loop {
            let up = self.up.notified();
            if let Some(engine) = self.reached(Route::Any, dice).and_then(Host::engine) {
                return engine;
            }
            up.await;
        }
    }

    pub fn tell_up(&self) {
        self.up.notify_waiters();
    }

    pub fn lives(&self) -> u64 {
        self.all.iter().map(Host::lives).sum()
    }

    /// The time on the clock that is ahead of all others.
    pub fn now(&self) -> Timestamp {
        self.all.iter().map(Host::now).max().unwrap_or_default()
    }

    /// Sets the database's clock, which all machines follow. Where there are several it goes forward only: one that starts
    /// right after it was set back is further behind the others than is tolerated.
    pub fn jump(&self, by_ms: i64) {
        let by_ms = if self.all.len() == 1 { by_ms } else { by_ms.abs() };
        self.all.iter().for_each(|host| host.jump(by_ms));
    }

    pub fn crash_all(&self) {
        self.all.iter().for_each(Host::ask_to_crash);
    }

    /// Comes back when the database has been restored. Called by each machine, with its engine down.
    pub async fn restore(&self, sim: &Sim, number: usize, (dice, options): (&Dice, EngineOptions)) {
        self.restore.wait().await;
        if number == 0
            && let Err(what) = Box::pin(sim.archive.restore(sim, dice, options)).await
        {
            sim.broken(what);
        }
        self.restore.wait().await;
    }
}
