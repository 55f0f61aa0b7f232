//! Backup and restore: a copy of the database from some minutes ago takes the place of the real one. What was
//! acknowledged in between is gone by right; what was done to the outside is not, and must not be done again blindly.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use interlock_core::ids::ServerId;
use interlock_core::run::Run;
use interlock_core::state::ReceiptState;
use interlock_engine::{Engine, EngineOptions};
use interlock_store::{CommitFault, Faults, Mode, Options, RaiseEpoch, Store, StoreUrl};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::books::Books;
use crate::check::Ledger;
use crate::dice::Dice;
use crate::host::LEASE;
use crate::sim::Sim;
use crate::swarm::Fault;
use crate::trace::say;

pub struct Archive {
    database: String,
    copy: String,
    /// What was known when the copy was made.
    kept: Mutex<Option<(Books, Ledger)>>,
    asked: AtomicBool,
    restores: AtomicU64,
    restored_at: Mutex<Option<Instant>>,
}

impl Archive {
    pub fn new(database: &str) -> Self {
        Self {
            database: database.to_owned(),
            copy: format!("{database}-backup"),
            kept: Mutex::default(),
            asked: AtomicBool::new(false),
            restores: AtomicU64::new(0),
            restored_at: Mutex::default(),
        }
    }

    /// How often the world was set back.
    pub fn restores(&self) -> u64 {
        self.restores.load(Ordering::Relaxed)
    }

    pub fn back_up(&self, sim: &Sim) {
        if let Err(error) = interlock_store::copy_memory(&self.database, &self.copy) {
            return sim.broken(format!("a backup failed: {error}"));
        }
        let known = (sim.books(|books| books.clone()), sim.ledger(|ledger| ledger.clone()));
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        say!(sim, "archive", "a backup is made");
    }

    pub fn has_backup(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The next engine starts on the backup.
    pub fn ask_to_restore(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Does what `interlock db restore` does.
    pub async fn restore(&self, sim: &Sim, dice: &Dice, options: EngineOptions) -> Result<(), String> {
        self.asked.store(false, Ordering::Relaxed);
        let Some((books, ledger)) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        interlock_store::copy_memory(&self.copy, &self.database).map_err(|error| error.to_string())?;
        sim.books(|current| *current = books);
        sim.ledger(|current| *current = ledger);
        sim.sink.beliefs_are_lost();
        self.restores.fetch_add(1, Ordering::Relaxed);
        *self.restored_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        sim.tally.count(Fault::Restore.name());
        let break_offs = if sim.swarm.broken_restores { dice.between(0..=2) } else { 0 };
        for number in 0..=break_offs {
            let breaks_off = (number < break_offs).then(|| dice.between(1..=4));
            if Box::pin(self.try_to_restore(sim, options.clone(), number == 0, breaks_off)).await? {
                break;
            }
            sim.tally.count("restores broken off");
            // An operator who sees that it was broken off calls it again, or starts a server, which has to finish it.
            if dice.one_in(2) {
                break;
            }
        }
        Ok(())
    }

    /// Raises the epoch and parks runs. Answers whether it came to its end; it is killed after so many commits.
    async fn try_to_restore(
        &self,
        sim: &Sim,
        options: EngineOptions,
        is_first: bool,
        breaks_off: Option<u64>,
    ) -> Result<bool, String> {
        let knife =
            Arc::new(RestoreCutter { commits: AtomicU64::new(breaks_off.unwrap_or(u64::MAX)), cut: Notify::new() });
        let mut store_options = Options::new(ServerId(options.ids.fresh()));
        store_options.mode = Mode::Inline(Arc::clone(&knife) as Arc<dyn Faults>);
        let url = StoreUrl::SqliteMemory(self.database.clone());
        let store = Store::open(&url, store_options).await.map_err(|error| error.to_string())?;
        let parking = async {
            // One that was broken off goes on in the epoch that it has begun.
            if is_first {
                store.write(RaiseEpoch).await.map_err(|error| error.to_string())?;
            }
            let options = EngineOptions { loops: false, ..options };
            let engine = Engine::open(store.clone(), options).await.map_err(|error| error.to_string())?;
            let parked = engine.runs().park_restored().await.map_err(|error| error.to_string())?;
            say!(sim, "archive", "restored; {} runs are parked", parked.parked.len());
            engine.stop().await;
            Ok::<_, String>(())
        };
        let finished = tokio::select! {
            biased;
            () = knife.cut.notified() => false,
            parked = parking => { parked?; true },
        };
        if finished {
            store.close().await;
        } else {
            store.kill();
            say!(sim, "archive", "the restore is broken off");
        }
        Ok(finished)
    }

    /// Whether no worker can be left that sends effects for an attempt from before the restore.
    pub fn is_settled(&self) -> bool {
        let at = *self.restored_at.lock().unwrap_or_else(PoisonError::into_inner);
        at.is_none_or(|at| at.elapsed() > LEASE.as_duration() + Duration::from_secs(1))
    }

    /// What a person finds who looks at a run before they let it go on.
    pub async fn look_at(&self, sim: &Sim, run: &Run) -> EffectsSinceBackup {
        if self.restores() == 0 {
            return EffectsSinceBackup::Fine;
        }
        if !self.is_settled() {
            return EffectsSinceBackup::TooEarly;
        }
        for key in sim.sink.unsafe_keys(run.tenant, run.root()) {
            let known = match sim.database().receipt_by_key(run.tenant, &key).await {
                Ok(row) => row.is_some_and(|row| row.receipt.state != ReceiptState::Failed),
                Err(_) => return EffectsSinceBackup::TooEarly,
            };
            if !known {
                return EffectsSinceBackup::ActedSince;
            }
        }
        EffectsSinceBackup::Fine
    }
}

/// Ends a restore after so many commits.
struct RestoreCutter {
    commits: AtomicU64,
    cut: Notify,
}

impl Faults for RestoreCutter {
    fn before_commit(&self, _group: u64) -> BoxFuture<'static, CommitFault> {
        let left = self.commits.load(Ordering::Relaxed);
        if left == 0 {
            self.cut.notify_one();
            return std::future::pending().boxed();
        }
        self.commits.store(left - 1, Ordering::Relaxed);
        std::future::ready(CommitFault::None).boxed()
    }
}

/// What became of a run's effects since the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectsSinceBackup {
    Fine,
    /// A worker may still be at it.
    TooEarly,
    /// It has had effects that the store knows nothing of.
    ActedSince,
}
