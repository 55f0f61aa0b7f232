//! Swarm testing: each seed gets its own subset of faults and its own shape of world, because a fault that is always
//! there hides what only happens without it.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::limits;
use interlock_core::time::Millis;

use crate::dice::Dice;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $name:literal at $rate:literal),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($(#[$doc])* $variant),+ }

        impl Fault {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => concat!("fault: ", $name)),+ }
            }

            /// How likely it is each time it could happen.
            const fn rate(self) -> f64 {
                match self { $(Self::$variant => $rate),+ }
            }
        }
    };
}

faults! {
    /// The engine dies right before a group is committed.
    CrashBeforeCommit = "crash before a commit" at 0.004,
    /// The engine dies with a group committed and no caller answered.
    CrashAfterCommit = "crash after a commit" at 0.004,
    /// The engine dies at any instant.
    Crash = "crash" at 0.4,
    CommitUnknown = "commit unknown" at 0.03,
    LostBeforeCommit = "connection lost before a commit" at 0.03,
    SlowStore = "slow store" at 0.05,
    SlowReads = "slow reads" at 0.01,
    RequestLost = "request lost" at 0.03,
    AnswerLost = "answer lost" at 0.03,
    Duplicate = "request duplicated" at 0.04,
    /// A message that arrives when its receiver does not wait for it any more.
    Late = "message late" at 0.02,
    /// The caller has gone, and the server drops what it was doing for it.
    CallerGone = "caller gone" at 0.03,
    WorkerPaused = "worker paused" at 0.5,
    WorkerCrash = "worker crashed" at 0.5,
    ClockJump = "clock jumped" at 0.5,
    /// The outside world refuses, or its answers are lost.
    SinkTrouble = "sink trouble" at 0.15,
    DeliveryTrouble = "delivery failed" at 0.2,
    Restore = "restored from a backup" at 0.5,
}

/// What only some worlds have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Schedules,
    Inbound,
    Outbound,
    UnnamedEffects,
    Rush,
    Haste,
    Gates,
    EagerStarters,
    UnreadableRows,
}

/// Which faults a seed has, and how often.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a throw of its own")]
pub struct Swarm {
    rates: BTreeMap<Fault, f64>,
    pub tenants: u64,
    pub workers: u64,
    pub orders: u64,
    pub storm_ms: u64,
    /// How many runs the engine keeps in memory: few, so that loading is exercised too.
    pub cells: usize,
    /// Do tasks fail by themselves?
    pub failing_tasks: f64,
    pub operators: u64,
    /// How far the clock of each server is off; as many servers as there are clocks.
    pub skews_ms: Vec<i64>,
    /// People resolve a doubt the instant they may. A clock that jumps says too early that they may.
    pub at_once: bool,
    /// Restores are killed halfway.
    pub broken_restores: bool,
    /// Some rows cannot be read for a while. A restore would bring them back.
    pub unreadable: bool,
    /// Outputs are longer than what stands in a row.
    pub payloads: bool,
    /// Ended runs are swept away soon. The checks must have seen them before, whatever the clock does.
    pub retention: bool,
    /// More orders, and sessions that are large enough to keep places for quiet tenants.
    pub crowded: bool,
    /// An operator acts on many runs at once. Not after a restore: then each run is looked at first.
    pub bulk: bool,
    /// Which workers run the worker crate.
    pub agents: BTreeSet<u64>,
    /// No worker names its effects, so none of them is the worker crate.
    pub unnamed: bool,
    /// Runs start by the clock.
    pub schedules: bool,
    /// Runs start by webhooks and signals.
    pub inbound: bool,
    /// Endpoints are told of events.
    pub outbound: bool,
    /// One tenant's orders come all at once, and few ready runs fit into memory.
    pub rush: bool,
    /// Unsafe effects take long, their steps are given up soon, and people resolve what is then in doubt at once.
    pub hasty: bool,
    /// Steps behind a gate fail, and operators try them again with other inputs.
    pub gated: bool,
    /// Runs begin with a wait for a signal that their starter sends right afterwards, through another server.
    pub eager: bool,
    /// Rollbacks are verified by steps of their own.
    pub verifies: bool,
    /// One tenant is busy beside a quiet one, whose change sets go by the priority lane of the store.
    pub quiet: bool,
}

/// How slow the store is where a tenant is quiet: as [`Fault::SlowStore`] is at its strongest.
const SLOW_BESIDE_QUIET: f64 = 0.125;

impl Swarm {
    /// `later` throws what was added to the worlds later, `triggers` what was added after that, so that the rest of a
    /// world stays as it was.
    pub fn draw(dice: &Dice, later: &Dice, triggers: &Dice) -> Self {
        let mut rates = BTreeMap::new();
        // A few seeds in calm weather: what fails there needs no storm.
        let stormy = !dice.one_in(12);
        for fault in Fault::ALL {
            let strength = dice.weighted(&[(4, 0.0), (1, 0.3), (2, 1.0), (1, 2.5)]);
            if stormy && strength > 0.0 {
                rates.insert(*fault, fault.rate() * strength);
            }
        }
        let hasty = triggers.one_in(10);
        if hasty {
            // A clock that jumps says too early that a resolution may be believed, and a restore takes it back.
            rates.retain(|fault, _| !matches!(fault, Fault::ClockJump | Fault::Restore));
            rates.extend([(Fault::SinkTrouble, 0.4), (Fault::WorkerPaused, 0.9), (Fault::Late, 0.06)]);
        }
        let (jumps, restores) = (rates.contains_key(&Fault::ClockJump), rates.contains_key(&Fault::Restore));
        let (tenants, workers, orders) = (dice.between(1..=3), dice.between(1..=3), dice.between(4..=14));
        // The checks read from the same store: a slow one would hide an end until the run is swept.
        let slow = rates.contains_key(&Fault::SlowStore) || rates.contains_key(&Fault::SlowReads);
        let crowded = later.one_in(8);
        let mut swarm = Self {
            rates,
            tenants,
            workers,
            orders: if crowded { later.between(25..=40) } else { orders },
            storm_ms: dice.between(8_000..=40_000),
            cells: *dice.pick(&[64, 64, 16_384]),
            failing_tasks: *dice.pick(&[0.0, 0.1, 0.3]),
            operators: dice.between(0..=2),
            skews_ms: skews_ms(later),
            at_once: later.one_in(3) && !jumps,
            broken_restores: later.one_in(2),
            unreadable: later.one_in(5) && !restores,
            payloads: later.one_in(4),
            retention: later.one_in(5) && !restores && !jumps && !slow,
            crowded,
            bulk: later.one_in(5) && !restores,
            agents: (0..workers).filter(|_| later.one_in(2)).collect(),
            unnamed: triggers.one_in(6),
            schedules: triggers.one_in(5),
            inbound: triggers.one_in(5),
            outbound: triggers.one_in(5),
            rush: triggers.one_in(2) && crowded,
            hasty,
            gated: triggers.one_in(12),
            eager: triggers.one_in(3),
            verifies: false,
            quiet: false,
        };
        swarm.at_once |= hasty;
        swarm.eager &= swarm.skews_ms.len() > 1 && !swarm.gated;
        if swarm.gated {
            (swarm.failing_tasks, swarm.operators, swarm.payloads) = (0.5, 2, false);
        }
        // A run whose row cannot be read is not followed either.
        swarm.retention &= !swarm.unreadable;
        if swarm.unnamed {
            swarm.agents.clear();
        }
        // What a trigger has started is looked at until the end.
        let kept = !swarm.retention;
        (swarm.schedules, swarm.inbound, swarm.outbound) =
            (swarm.schedules && kept, swarm.inbound && kept, swarm.outbound && kept);
        swarm
    }

    /// Makes one tenant quiet beside another, on a slow store: there the commits of one lane overtake those of the other.
    pub fn add_quiet_tenant(&mut self) {
        (self.quiet, self.tenants) = (true, self.tenants.max(2));
        let slow = self.rates.entry(Fault::SlowStore).or_default();
        *slow = f64::max(*slow, SLOW_BESIDE_QUIET);
    }

    pub const fn has(&self, part: Part) -> bool {
        match part {
            Part::Schedules => self.schedules,
            Part::Inbound => self.inbound,
            Part::Outbound => self.outbound,
            Part::UnnamedEffects => self.unnamed,
            Part::Rush => self.rush,
            Part::Haste => self.hasty,
            Part::Gates => self.gated,
            Part::EagerStarters => self.eager,
            Part::UnreadableRows => self.unreadable,
        }
    }

    pub const fn has_triggers(&self) -> bool {
        self.schedules || self.inbound || self.outbound
    }

    /// The rate of a fault; 0 where the seed does not have it.
    pub fn rate(&self, fault: Fault) -> f64 {
        self.rates.get(&fault).copied().unwrap_or(0.0)
    }

    /// How far the instants of two servers may be apart.
    pub fn skew(&self) -> Millis {
        if self.skews_ms.len() > 1 { limits::CLOCK_SKEW_TOLERATED } else { Millis(0) }
    }

    /// Whether two servers' clocks are as far apart as is tolerated.
    pub fn has_widest_skew(&self) -> bool {
        let (least, most) = (self.skews_ms.iter().min(), self.skews_ms.iter().max());
        let apart = least.zip(most).map_or(0, |(least, most)| most.abs_diff(*least));
        apart == limits::CLOCK_SKEW_TOLERATED.0
    }

    /// The faults of this seed, for the trace.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.rates.keys().map(|fault| &fault.name()["fault: ".len()..]).collect();
        if names.is_empty() { "no faults".to_owned() } else { names.join(", ") }
    }
}

/// The clocks of one to three servers, no two of them further apart than is tolerated.
fn skews_ms(dice: &Dice) -> Vec<i64> {
    let most = limits::CLOCK_SKEW_TOLERATED.0;
    let others = dice.weighted(&[(12, 0), (6, 1), (1, 2)]);
    let mut skews = vec![0];
    skews.extend((0..others).map(|_| dice.between(0..=most) as i64));
    if others > 0 && dice.one_in(3) {
        skews[1] = most as i64;
    }
    // Which machine's clock is ahead of which.
    if dice.one_in(2) { skews.into_iter().map(|skew| -skew).collect() } else { skews }
}
