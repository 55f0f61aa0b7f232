//! Who is in a world: its tenants, its workers, and what clients want.

use std::sync::Arc;

use interlock_core::ids::TenantId;
use interlock_core::plan::DEFAULT_QUEUE;
use interlock_core::plan::rules::OnConflict;
use interlock_core::tenant::caps::Caps;
use interlock_store::Tenant;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::client::Order;
use crate::dice::Dice;
use crate::host::EPOCH;
use crate::network::Caller;
use crate::plans::SIDE_QUEUE;
use crate::quiet;
use crate::sim::Sim;
use crate::worker::{Gate, Worker};

/// When the orders come that come all at once.
const RUSH_MS: u64 = 2_000;

pub fn tenant(dice: &Dice, number: u64) -> Tenant {
    let id = TenantId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 + u128::from(number)));
    let mut tenant = Tenant::new(id, format!("tenant-{number}"), EPOCH);
    tenant.caps = Caps {
        max_concurrency: dice.one_in(2).then(|| dice.between(1..=3) as u32),
        max_runs_per_min: dice.one_in(4).then(|| dice.between(4..=30) as u32),
    };
    tenant.pending_runs_max = dice.one_in(6).then(|| dice.between(2..=6) as u32);
    tenant.weight = dice.between(1..=3) as u32;
    tenant
}

pub fn hire(sim: &Arc<Sim>, dice: &Dice, number: u64) -> Arc<Worker> {
    // The first one takes everything, so that everything can be done.
    let all = number == 0;
    let tenant = (!all && dice.one_in(3)).then(|| dice.pick(&sim.tenants).id);
    let queues = if all || dice.one_in(2) { vec![DEFAULT_QUEUE, SIDE_QUEUE] } else { vec![DEFAULT_QUEUE] };
    Arc::new(Worker {
        name: format!("worker {number}"),
        tenant,
        queues: queues.into_iter().map(ToOwned::to_owned).collect(),
        slots: slots(sim, dice),
        is_agent: sim.swarm.agents.contains(&number),
        names_effects: !sim.swarm.unnamed,
        caller: Caller::new(sim, dice).persistent(),
        gate: Gate::default(),
        die: Notify::new(),
    })
}

fn slots(sim: &Sim, dice: &Dice) -> u32 {
    if sim.swarm.quiet {
        return quiet::SLOTS;
    }
    let slots = if sim.swarm.crowded { dice.between(8..=20) } else { dice.between(1..=4) };
    slots as u32
}

/// Where orders come all at once, most of them are one tenant's.
pub fn rushed(sim: &Sim, order: Order) -> Order {
    if !sim.swarm.rush || order.number.is_multiple_of(5) {
        return order;
    }
    let (tenant, at_ms) = (sim.tenants[0].id, RUSH_MS + sim.triggers().dice.between(0..=20));
    let plan = if order.number % 5 == 1 { order.plan } else { Arc::clone(&sim.workflows[0]) };
    Order { tenant, at_ms, plan, subject: None, workspace: "default".into(), ..order }
}

pub fn order(sim: &Sim, dice: &Dice, number: u64) -> Order {
    let keyless = dice.one_in(8);
    let subject = dice.one_in(4).then(|| format!("ticket-{}", dice.between(1..=3)));
    Order {
        number,
        tenant: dice.pick(&sim.tenants).id,
        plan: Arc::clone(dice.pick(&sim.workflows)),
        key: (!keyless).then(|| format!("key-{number}")),
        subject,
        on_conflict: dice.weighted(&[
            (2, OnConflict::Reject),
            (3, OnConflict::Queue),
            (3, OnConflict::Signal),
            (1, OnConflict::CancelPrevious),
        ]),
        at_ms: dice.between(0..=sim.swarm.storm_ms * 2 / 3),
        priority: dice.between(0..=2) as i32,
        workspace: (*dice.pick(&["default", "lab"])).to_owned(),
    }
}
