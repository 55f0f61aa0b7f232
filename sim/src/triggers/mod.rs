//! Runs that are started by something else than a request for them: by the [`clock`], by webhooks and signals of
//! [`senders`]; and the [`receivers`] of a tenant's events, with what has [arrived](arrivals) there. Their workflows are [`files`], applied before the storm.

mod arrivals;
pub mod clock;
mod files;
pub mod receivers;
pub mod senders;

use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::TenantId;
use interlock_core::time::Millis;
use interlock_engine::audit::Actor;
use interlock_engine::commands::apply::{ApplyWorkflow, Expected};
use interlock_engine::{EncodedPlan, Engine, EngineOptions};
use interlock_store::RunSummary;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::caretaker;
use crate::dice::Dice;
use crate::doubts::Doubts;
use crate::host::equipped;
use crate::network::Caller;
use crate::sim::Sim;
use clock::ScheduleModel;
use receivers::Receiver;
use senders::Address;

/// What starts runs in a world, and who is told of them.
pub struct Triggers {
    /// Thrown for everything that is about them, so that the rest of a world stays as it is.
    pub dice: Dice,
    pub plans: Vec<Arc<EncodedPlan>>,
    pub schedules: Vec<ScheduleModel>,
    pub addresses: Vec<Address>,
    pub receivers: Vec<Receiver>,
    /// The workflows that take a delivery, and those that take a signal.
    pub on_webhook: Vec<String>,
    pub on_signal: Vec<String>,
}

/// The longest that a delivery whose server died, or a message that was refused, waits for its next try.
const JUMP: Millis = Millis::from_mins(11);
/// So often the clock is set forward until nothing is left to do.
const JUMPS_MAX: usize = 12;

/// Applies the files and makes the addresses, with an engine of its own and in calm weather.
pub async fn set_up(sim: &Arc<Sim>, dice: Dice) -> Result<Triggers, String> {
    let mut triggers = Triggers {
        plans: Vec::new(),
        schedules: Vec::new(),
        addresses: Vec::new(),
        receivers: Vec::new(),
        on_webhook: Vec::new(),
        on_signal: Vec::new(),
        dice,
    };
    let dice = triggers.dice.clone();
    if !sim.swarm.has_triggers() {
        return Ok(triggers);
    }
    let options = EngineOptions { loops: false, ..sim.hosts.at(0).options(sim, &dice) };
    let options = equipped(options, sim, &dice);
    let engine = Engine::open(sim.database().clone(), options).await.map_err(|error| error.to_string())?;
    let files = files::draw(sim, &dice);
    for tenant in &sim.tenants {
        for file in &files {
            let plan = apply(&engine, tenant.id, &file.source).await?;
            if !triggers.plans.iter().any(|known| known.plan.workflow == plan.plan.workflow) {
                triggers.plans.push(plan);
            }
            if let Some(cadence) = &file.cadence {
                triggers.schedules.push(clock::made(&engine, tenant.id, cadence).await?);
            }
        }
        if sim.swarm.inbound {
            triggers.addresses.push(senders::make(&engine, tenant.id).await?);
        }
        if sim.swarm.outbound {
            triggers.receivers.extend(receivers::make(&engine, tenant.id, &dice).await?);
        }
    }
    triggers.on_webhook = files.iter().filter(|file| file.on_webhook).map(|file| file.name.clone()).collect();
    triggers.on_signal = files.iter().filter(|file| file.on_signal).map(|file| file.name.clone()).collect();
    engine.stop().await;
    Ok(triggers)
}

async fn apply(engine: &Engine, tenant: TenantId, source: &str) -> Result<Arc<EncodedPlan>, String> {
    let request = ApplyWorkflow {
        tenant,
        file: "simulated.yaml".into(),
        source: source.to_owned(),
        name: None,
        expected: Expected::Anything,
        person: None,
        by: Actor::system(),
    };
    let applied = engine.workflows().apply(request).await.map_err(|error| format!("a file is refused: {error}"))?;
    Ok(Arc::clone(&applied.version.plan))
}

/// Everybody who acts on them.
pub fn spawn(sim: &Arc<Sim>, actors: &mut JoinSet<()>, clients: &mut JoinSet<()>) {
    let triggers = sim.triggers();
    if triggers.schedules.iter().any(|schedule| schedule.restless) {
        actors.spawn(clock::meddle(Caller::new(sim, &triggers.dice)));
    }
    for address in &triggers.addresses {
        for delivery in senders::deliveries(sim, address) {
            clients.spawn(senders::deliver(Caller::new(sim, &triggers.dice), delivery));
        }
        for alarm in senders::alarms(sim, address.tenant) {
            clients.spawn(senders::alarm(Caller::new(sim, &triggers.dice), alarm));
        }
    }
}

/// What a run was started for: no other run is started for the same. Runs that continue others have no occasion.
pub fn occasion(run: &RunSummary) -> Option<String> {
    if !matches!(run.trigger_type.as_str(), "schedule" | "signal" | "standard") {
        return None;
    }
    let reference = run.trigger_ref.as_deref().unwrap_or_default();
    if reference.contains(":now:") {
        return Some(format!("{} {reference}", run.workflow));
    }
    let inputs: Value = run.inputs.decode().ok()?;
    Some(format!("{} {}", run.workflow, inputs["order"].as_str()?))
}

/// After the faults: waits until every slot, delivery and message has been dealt with. What waits for minutes is due at
/// once when the clock is set forward, which does no harm while no run is live.
///
/// `follow` looks at what has happened, before the clock hides how long it took.
pub async fn settle(
    caller: &Caller,
    seen: &Arc<Doubts>,
    follow: impl AsyncFn() -> Result<(), String>,
) -> Result<(), String> {
    let sim = &caller.sim;
    if !sim.swarm.has_triggers() {
        return Ok(());
    }
    clock::settle(caller, seen).await?;
    arrivals::come_back(caller).await?;
    for _ in 0..JUMPS_MAX {
        if senders::is_settled(sim).await? && arrivals::is_settled(sim).await? {
            return Ok(());
        }
        follow().await?;
        sim.hosts.jump(JUMP.0 as i64);
        sleep(Duration::from_secs(8)).await;
        caretaker::drain(caller, seen).await;
        // What was given up for the sake of an endpoint that is back.
        arrivals::replay_dead_letters(caller).await?;
    }
    Err("P8: deliveries or messages are left, however often the clock is set forward".into())
}

/// What must hold at the end.
pub async fn check(sim: &Sim) -> Result<(), String> {
    clock::check(sim).await?;
    senders::check(sim).await?;
    arrivals::check(sim).await
}
