//! One seed from the beginning to the end.

use std::cell::RefCell;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use interlock_engine::EncodedPlan;
use interlock_store::{PutTenant, Tenant};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::archive::Archive;
use crate::cast;
use crate::check::{self, finale};
use crate::client;
use crate::damage::{self, Damage};
use crate::dice::Dice;
use crate::doubts::{self, Doubts};
use crate::hosts::Hosts;
use crate::network::Caller;
use crate::people;
use crate::plans::{self, WorkflowVariant};
use crate::sim::Sim;
use crate::swarm::{Fault, Part, Swarm};
use crate::tally::Counts;
use crate::trace::{Trace, say};
use crate::worker::Worker;
use crate::{bulk, caretaker, host, network, quiet, triggers, watcher};

/// What is added to the worlds later is thrown with dice that begin elsewhere.
const LATER: u64 = 0x5eed_0000_1a7e_0000;
const TRIGGERS: u64 = 0x5eed_0000_0000_c10c;
/// Worlds whose rollbacks are verified: one in so many, and which of them. No seed that is known to notice a planted bug
/// (`tests/planted.rs`) is among them.
const VERIFYING_EVERY: u64 = 16;
const VERIFYING: u64 = 11;
/// How many of their tasks fail at each try.
const FAILING_WHERE_VERIFIED: f64 = 0.4;

/// Worlds with a quiet tenant, chosen in the same way.
const QUIET_EVERY: u64 = 20;
const QUIET: u64 = 12;

/// A seed in which every promise held.
#[derive(Debug)]
pub struct PassedSeed {
    pub counts: Counts,
    /// Of everything that happened: the same seed has the same one.
    pub hash: u64,
}

/// A seed that broke a promise.
#[derive(Debug)]
pub struct FailedSeed {
    pub seed: u64,
    pub what: String,
    pub faults: String,
    /// The last lines of what happened.
    pub trace: String,
}

impl fmt::Display for FailedSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, what, faults, trace } = self;
        write!(f, "seed {seed} ({faults}):\n{trace}\nseed {seed}: {what}\n")?;
        write!(f, "to see it again: INTERLOCK_SIM_SEED={seed} cargo nextest run -p interlock-sim seeds --no-capture")
    }
}

thread_local! {
    /// A panic of some task on this thread, while it simulates.
    static PANICKED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Panics of simulated tasks are findings: they are kept for the report instead of being printed.
fn listen_for_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let kept = PANICKED
                .with_borrow_mut(|panics| panics.as_mut().map(|panics| panics.push(info.to_string())).is_some());
            if !kept {
                usual(info);
            }
        }));
    });
    PANICKED.set(Some(Vec::new()));
}

fn panicked() -> Option<String> {
    PANICKED.with_borrow(|panics| panics.as_ref().and_then(|panics| panics.first().cloned()))
}

/// Simulates one world.
pub fn run_seed(seed: u64, print: bool) -> Result<PassedSeed, Box<FailedSeed>> {
    static WORLDS: AtomicU64 = AtomicU64::new(0);
    listen_for_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap_or_else(|error| panic!("a runtime can be made: {error}"));
    let database = format!("seed-{seed}-{}", WORLDS.fetch_add(1, Ordering::Relaxed));
    let lived = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(world(seed, &database, print))));
    // The tasks that are left are dropped before the database is.
    drop(runtime);
    interlock_store::forget_memory(&database);
    interlock_store::forget_memory(&format!("{database}-backup"));
    let panicked = panicked();
    PANICKED.set(None);
    let Ok(sim) = lived else {
        // In no task, but in the world's own story: nothing is left of it to tell from.
        let what = format!("panic: {}", panicked.unwrap_or_default());
        return Err(Box::new(FailedSeed { seed, what, faults: String::new(), trace: String::new() }));
    };
    match panicked.map(|what| format!("panic: {what}")).or_else(|| sim.what_broke()) {
        None => Ok(PassedSeed { counts: sim.tally.counts(), hash: sim.trace.hash() }),
        Some(what) => Err(Box::new(FailedSeed { seed, what, faults: sim.swarm.names(), trace: sim.trace.tail(60) })),
    }
}

/// Whether the world of a seed has a part that not all have.
pub fn has_part(seed: u64, part: Part) -> bool {
    draw(seed).0.has(part)
}

/// The shape of a seed's world, and the dice for everything else in it: that of old, and that of triggers.
fn draw(seed: u64) -> (Swarm, Dice, Dice) {
    let (dice, triggers) = (Dice::new(seed), Dice::new(seed ^ TRIGGERS));
    let mut swarm = Swarm::draw(&dice, &Dice::new(seed ^ LATER), &triggers);
    // The seed itself decides, so that no throw is added: all other worlds stay as they were.
    swarm.verifies = seed % VERIFYING_EVERY == VERIFYING;
    if swarm.verifies {
        // So that there is something to roll back.
        swarm.failing_tasks = FAILING_WHERE_VERIFIED;
    }
    // Its store is slow, and the checks must have seen an ended run before it is swept.
    if seed % QUIET_EVERY == QUIET && !swarm.retention {
        swarm.add_quiet_tenant();
    }
    (swarm, dice, triggers)
}

async fn world(seed: u64, database: &str, print: bool) -> Arc<Sim> {
    let (swarm, dice, trigger_dice) = draw(seed);
    let mut tenants: Vec<Tenant> = (1..=swarm.tenants).map(|number| cast::tenant(&dice, number)).collect();
    let twists = Dice::new(!seed);
    let workflow = |number| plans::workflow(&dice, number, &WorkflowVariant::new(&twists, &swarm));
    let mut workflows: Vec<Arc<EncodedPlan>> = (0..dice.between(2..=4)).map(workflow).collect();
    if swarm.quiet {
        quiet::even_out(&mut tenants);
        workflows.extend(quiet::workflows());
    }
    let places = (Hosts::new(database, &swarm.skews_ms), Archive::new(database), Damage::new(database));
    let sim = Arc::new(Sim::new(swarm, places, Trace::new(print), tenants, workflows));
    say!(sim, "sim", "seed {seed}: {}; clocks off by {:?} ms", sim.swarm.names(), sim.swarm.skews_ms);
    for workflow in &sim.workflows {
        say!(sim, "sim", "{}", workflow.text.as_str());
    }
    let checks = sim.hosts.open_for_checks().await;
    for tenant in &sim.tenants {
        if let Err(error) = checks.write(PutTenant(tenant.clone())).await {
            sim.broken(format!("a tenant cannot be made: {error}"));
        }
    }
    sim.set_checks(checks);
    match triggers::set_up(&sim, trigger_dice).await {
        Ok(made) => sim.set_triggers(made),
        Err(what) => {
            sim.broken(what);
            return sim;
        }
    }
    tokio::select! {
        biased;
        () = sim.until_broken() => {}
        told = story(&sim, &dice) => if let Err(what) = told {
            sim.broken(what);
        },
    }
    if sim.what_broke().is_some() {
        // What was journaled since the last look belongs to the report.
        let _ = check::follow(&sim).await;
    }
    sim.hosts.iter().filter_map(host::Host::engine).for_each(|engine| host::count_pressure(&sim, &engine));
    sim.tally.add("engines", sim.hosts.lives());
    sim.tally.add("worlds of several servers", u64::from(sim.swarm.skews_ms.len() > 1));
    sim.tally.add("worlds whose clocks differ by all that is tolerated", u64::from(sim.swarm.has_widest_skew()));
    sim.tally.add("calls to the outside", sim.sink.calls());
    sim.tally.add("seconds simulated", sim.trace.elapsed() / 1_000);
    sim
}

async fn story(sim: &Arc<Sim>, dice: &Dice) -> Result<(), String> {
    let mut actors = JoinSet::new();
    for (number, _) in sim.hosts.iter().enumerate() {
        let (sim, dice) = (Arc::clone(sim), dice.fork());
        actors.spawn(async move { Box::pin(sim.hosts.at(number).run(&sim, dice)).await });
    }
    let watching = Arc::clone(sim);
    actors.spawn(async move { keep_looking(&watching).await });
    let gremlin = Caller::new(sim, dice);
    actors.spawn(async move { make_trouble(gremlin).await });
    let workers: Vec<Arc<Worker>> = (0..sim.swarm.workers).map(|number| cast::hire(sim, dice, number)).collect();
    for worker in &workers {
        actors.spawn(Arc::clone(worker).run());
        actors.spawn(Arc::clone(worker).stand_still());
    }
    let seen = Arc::new(Doubts::default());
    if sim.swarm.unreadable {
        actors.spawn(damage::come_and_go(Caller::new(sim, dice)));
    }
    if sim.swarm.bulk {
        actors.spawn(bulk::order(Caller::new(sim, dice)));
    }
    if sim.swarm.at_once {
        actors.spawn(doubts::resolve_at_once(Caller::new(sim, dice), Arc::clone(&seen)));
    }
    for tenant in &sim.tenants {
        actors.spawn(people::approve(Caller::new(sim, dice), tenant.id));
        actors.spawn(watcher::follow(Caller::new(sim, dice), tenant.id));
    }
    actors.spawn(watcher::look_at_runs(Caller::new(sim, dice)));
    for _ in 0..sim.swarm.operators {
        actors.spawn(people::operate(Caller::new(sim, dice), Arc::clone(&seen)));
    }
    let mut clients = JoinSet::new();
    for number in 1..=sim.swarm.orders {
        let order = cast::rushed(sim, cast::order(sim, dice, number));
        clients.spawn(client::send_signals(Caller::new(sim, dice), order.clone()));
        clients.spawn(client::place(Caller::new(sim, dice), order));
    }
    for order in quiet::orders(sim, dice) {
        clients.spawn(client::place(Caller::new(sim, dice), order));
    }
    triggers::spawn(sim, &mut actors, &mut clients);
    sleep(Duration::from_millis(sim.swarm.storm_ms)).await;
    sim.become_calm();
    for worker in &workers {
        worker.gate.open();
    }
    let caller = Caller::new(sim, dice);
    if sim.swarm.unreadable {
        damage::outlast(&caller, || workers.iter().for_each(|worker| worker.die.notify_one())).await;
    }
    // Clients come to their end; then the last message that is still on its way arrives.
    while clients.join_next().await.is_some() {}
    sleep(network::LATEST).await;
    bulk::settle(sim).await?;
    caretaker::drain(&caller, &seen).await;
    triggers::settle(&caller, &seen, async || check::follow(sim).await).await?;
    settle(sim).await?;
    finale::check(sim).await
}

/// Looks at what was journaled while it happens, so that a broken promise is noticed near its cause.
async fn keep_looking(sim: &Sim) {
    for round in 1.. {
        sleep(Duration::from_millis(800)).await;
        if let Err(what) = check::follow(sim).await {
            sim.broken(what);
        }
        // It reads everything.
        if round % 16 == 0
            && let Err(what) = check::consistent(sim).await
        {
            sim.broken(what);
        }
        if sim.is_calm()
            && let Err(what) = check::reclaimed(sim).await
        {
            sim.broken(what);
        }
        if let Some(what) = panicked() {
            sim.broken(what);
        }
    }
}

/// Crashes at any instant, and clocks that are set.
async fn make_trouble(gremlin: Caller) {
    let Caller { sim, dice, .. } = gremlin;
    while !sim.is_calm() {
        sleep(dice.millis(1_000..=6_000)).await;
        if sim.fires(Fault::Crash, &dice) {
            sim.hosts.at(sim.hosts.pick(&dice)).ask_to_crash();
        } else if dice.one_in(12) {
            sim.hosts.at(sim.hosts.pick(&dice)).ask_to_stop();
        }
        if sim.swarm.rate(Fault::Restore) > 0.0 && dice.one_in(3) && !sim.archive.has_backup() {
            sim.archive.back_up(&sim);
        } else if dice.one_in(4) && sim.archive.has_backup() && sim.strikes(Fault::Restore, &dice) {
            sim.archive.ask_to_restore();
            sim.hosts.crash_all();
        }
        if sim.fires(Fault::ClockJump, &dice) {
            let far = dice.between(0..=if dice.one_in(3) { 120_000 } else { 6_000 }) as i64;
            let by_ms = if dice.one_in(2) { far } else { -far };
            say!(sim, "clock", "jumps by {by_ms} ms");
            sim.hosts.jump(by_ms);
        }
    }
}

/// Waits until the loops that come after a commit have nothing left to do.
async fn settle(sim: &Sim) -> Result<(), String> {
    let began = Instant::now();
    loop {
        sleep(Duration::from_secs(1)).await;
        let waiting = sim.database().next_outbox().await.map_err(|error| error.to_string())?;
        if waiting.is_none() {
            break;
        }
        if began.elapsed() > caretaker::DRAIN_MAX {
            return Err("P8: messages have not been delivered".into());
        }
    }
    // A watcher comes back at the latest after its longest connection; then it reads on.
    sleep(Duration::from_secs(8)).await;
    Ok(())
}
