//! Quiet tenants: the orders of one tenant come in waves, and another tenant has a few beside them. What the quiet one
//! commits then goes by the priority lane of the store, which does not wait for the groups of the busy one.

use std::ops::RangeInclusive;
use std::sync::Arc;

use interlock_core::plan::rules::OnConflict;
use interlock_core::state::EffectClass;
use interlock_core::tenant::caps::Caps;
use interlock_engine::EncodedPlan;
use interlock_store::Tenant;

use crate::client::Order;
use crate::dice::Dice;
use crate::plans::{self, Behaviour};
use crate::sim::Sim;

/// Where so many places were taken lately a tenant can be quiet: less than half a wave, which two servers may share.
pub const BUSY_FROM_PLACES: u64 = 10;
/// How many places a session has here: enough for a whole wave.
pub const SLOTS: u32 = 24;

/// When the waves come: the first one before most of the faults.
const WAVES_MS: [u64; 2] = [1_000, 5_000];
/// How long after the first orders of a wave its last ones come.
const WAVE_LENGTH_MS: u64 = 20;
/// How long after the wave has begun the orders of the quiet tenant come.
const QUIET_LATER_MS: RangeInclusive<u64> = 150..=400;
const BUSY_ORDERS: u64 = 24;
/// So few that the quiet tenant takes less than a quarter of its share, also where one of its steps is claimed again.
const QUIET_ORDERS: u64 = 2;

/// All tenants have the same weight, and nothing limits the busy one, which is the first.
pub fn even_out(tenants: &mut [Tenant]) {
    for tenant in tenants.iter_mut() {
        tenant.weight = 1;
    }
    if let Some(busy) = tenants.first_mut() {
        (busy.caps, busy.pending_runs_max) = (Caps::default(), None);
    }
}

/// The workflow of the busy tenant, whose runs are short, and that of the quiet one, whose runs commit often. They are the last of
/// the world's.
pub fn workflows() -> [Arc<EncodedPlan>; 2] {
    let short = Behaviour { asks: false, class: EffectClass::Read, effects: 0, bound: false };
    let long = Behaviour { class: EffectClass::Keyed, effects: 1, ..short };
    [plans::alike("busy", short, 1), plans::alike("quiet", long, 4)]
}

/// The orders of both; none in a world that has no quiet tenant.
pub fn orders(sim: &Sim, dice: &Dice) -> Vec<Order> {
    let mut orders = Vec::new();
    let ([busy, quiet, ..], [.., short, long]) = (&sim.tenants[..], &sim.workflows[..]) else { return orders };
    if !sim.swarm.quiet {
        return orders;
    }
    for wave_ms in WAVES_MS {
        for place in 0..BUSY_ORDERS + QUIET_ORDERS {
            let number = sim.swarm.orders + orders.len() as u64 + 1;
            let (tenant, plan, later_ms) = if place < BUSY_ORDERS {
                (busy.id, short, dice.between(0..=WAVE_LENGTH_MS))
            } else {
                (quiet.id, long, dice.between(QUIET_LATER_MS))
            };
            orders.push(Order {
                number,
                tenant,
                plan: Arc::clone(plan),
                key: Some(format!("key-{number}")),
                subject: None,
                on_conflict: OnConflict::Reject,
                at_ms: wave_ms + later_ms,
                priority: 0,
                workspace: "default".into(),
            });
        }
    }
    orders
}
