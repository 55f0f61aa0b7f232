//! Schedules. A slot is one run, however many servers look at the schedule and whenever one of them dies; none is lost
//! that its catch-up window covers; and the overlap policy holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::ids::{ScheduleId, TenantId};
use interlock_core::run::change::Context;
use interlock_core::state::Control;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::schedule::{Overlap, SlotState, slot_text};
use interlock_engine::audit::Actor;
use interlock_engine::schedules::TriggerSchedule;
use interlock_engine::{Engine, IdempotencyKey};
use interlock_store::{RunSummary, ScheduleRow, SlotRow};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::files::Cadence;
use crate::caretaker::{self, DRAIN_MAX};
use crate::doubts::Doubts;
use crate::host::EPOCH;
use crate::network::{Caller, PATIENCE};
use crate::sim::ALL;
use crate::sim::Sim;
use crate::trace::say;

/// A schedule of a tenant.
pub struct ScheduleModel {
    pub tenant: TenantId,
    pub id: ScheduleId,
    pub name: String,
    pub every_s: u64,
    pub overlap: Overlap,
    pub catch_up: Millis,
    pub restless: bool,
}

/// The instant behind the last slot: 9:48 of the day on which the simulated clocks start, at 9:46:40.
const SLOTS_END: Timestamp = Timestamp(EPOCH.0 + 80_000);

impl ScheduleModel {
    /// Every slot after an instant, by a simpler reckoning than the engine's.
    fn slots_after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> {
        let every = self.every_s as i64;
        let first = after.0 / 1_000 + 1;
        (first..SLOTS_END.0 / 1_000)
            .filter(move |second| second % 60 % every == 0)
            .map(|second| Timestamp(second * 1_000))
    }

    /// Whether the run is one of its slots', and not one that was triggered by hand.
    fn is_of_slot(&self, run: &RunSummary) -> bool {
        let by_hand = run.trigger_ref.as_deref().is_some_and(|reference| reference.contains(":now:"));
        run.trigger_type == "schedule" && run.workflow == format!("by-{}", self.name) && !by_hand
    }
}

/// The schedule that its file has made.
pub async fn made(engine: &Engine, tenant: TenantId, cadence: &Cadence) -> Result<ScheduleModel, String> {
    let row = engine.schedules().get(tenant, &cadence.name).await.map_err(|error| error.to_string())?;
    let Cadence { name, every_s, overlap, restless, .. } = cadence;
    Ok(ScheduleModel {
        tenant,
        id: row.id,
        name: name.clone(),
        every_s: *every_s,
        overlap: *overlap,
        catch_up: row.spec.catch_up,
        restless: *restless,
    })
}

#[derive(Debug, Clone, Copy)]
enum ScheduleVerb {
    Pause,
    Resume,
    Trigger(u64),
}

/// Carries a verb out; answers whether the engine has.
async fn direct(caller: &Caller, schedule: &ScheduleModel, verb: ScheduleVerb) -> bool {
    let (tenant, id) = (schedule.tenant, schedule.id.to_string());
    let answer = caller
        .call(PATIENCE, move |engine| {
            let id = id.clone();
            async move {
                let schedules = engine.schedules();
                match verb {
                    ScheduleVerb::Pause => schedules.pause(tenant, &id, None, &Actor::system()).await.map(drop),
                    ScheduleVerb::Resume => schedules.resume(tenant, &id, &Actor::system()).await.map(drop),
                    ScheduleVerb::Trigger(request) => {
                        let by = Context::operator("olga");
                        let key = IdempotencyKey { client: "olga".into(), key: request.to_string() };
                        let idempotency = Some(key);
                        let asked = TriggerSchedule { tenant, schedule: id, within: None, idempotency, by };
                        schedules.trigger(asked).await.map(drop)
                    }
                }
            }
        })
        .await;
    match answer {
        Ok(()) => {
            say!(caller.sim, "operator", "{verb:?} of {}", schedule.name);
            caller.sim.tally.count("schedules paused, resumed or triggered");
            true
        }
        Err(error) => {
            if !error.is_transient() {
                caller.sim.broken(format!("{verb:?} of {}: {error}", schedule.name));
            }
            false
        }
    }
}

/// A person pauses, resumes and triggers the schedules that allow it.
pub async fn meddle(caller: Caller) {
    let Caller { sim, dice, .. } = &caller;
    let restless: Vec<&ScheduleModel> = sim.triggers().schedules.iter().filter(|schedule| schedule.restless).collect();
    while !sim.is_calm() {
        sleep(dice.millis(1_000..=6_000)).await;
        let verb = match dice.between(0..=2) {
            0 => ScheduleVerb::Pause,
            1 => ScheduleVerb::Resume,
            _ => ScheduleVerb::Trigger(sim.next_nonce()),
        };
        let schedule: &ScheduleModel = dice.pick::<&ScheduleModel>(&restless);
        direct(&caller, schedule, verb).await;
    }
}

/// Waits until the last slot is over and has been dealt with, and all that was queued behind other runs.
pub async fn settle(caller: &Caller, seen: &Arc<Doubts>) -> Result<(), String> {
    let sim = &caller.sim;
    for schedule in sim.triggers().schedules.iter().filter(|schedule| schedule.restless) {
        while !direct(caller, schedule, ScheduleVerb::Resume).await {
            sleep(Duration::from_millis(500)).await;
        }
    }
    let began = Instant::now();
    for schedule in &sim.triggers().schedules {
        while !is_done(sim, schedule).await? {
            if began.elapsed() > DRAIN_MAX {
                return Err(format!("P8: {} has not dealt with its slots", schedule.name));
            }
            sleep(Duration::from_secs(1)).await;
            caretaker::drain(caller, seen).await;
        }
    }
    Ok(())
}

async fn is_done(sim: &Sim, schedule: &ScheduleModel) -> Result<bool, String> {
    let row = row_of(sim, schedule).await?;
    let queued = sim.database().queued_slots(schedule.tenant, schedule.id, 1).await;
    let queued = queued.map_err(|error| error.to_string())?;
    Ok(queued.is_empty() && row.next_at.is_none_or(|next| next > SLOTS_END + Millis::from_hours(1)))
}

async fn row_of(sim: &Sim, schedule: &ScheduleModel) -> Result<ScheduleRow, String> {
    let row = sim.database().schedule(schedule.tenant, schedule.id).await.map_err(|error| error.to_string())?;
    row.ok_or_else(|| format!("P1: {} is gone", schedule.name))
}

/// At every look: the runs of a schedule that must not run beside each other do not.
pub fn no_overlap(sim: &Sim, tenant: TenantId, runs: &[RunSummary]) -> Result<(), String> {
    let of_tenant = sim.triggers().schedules.iter().filter(|schedule| schedule.tenant == tenant);
    for schedule in of_tenant.filter(|schedule| schedule.overlap != Overlap::Allow && !schedule.restless) {
        let live = runs.iter().filter(|run| !run.state.is_terminal() && schedule.is_of_slot(run));
        // One that makes room has been canceled, and its worker may not know yet.
        let mut live = live.filter(|run| run.control != Some(Control::Canceling));
        if let (Some(one), Some(other)) = (live.next(), live.next()) {
            let (policy, one, other) = (schedule.overlap, one.run, other.run);
            return Err(format!("schedules: {one} runs beside {other}, and {} says {policy}", schedule.name));
        }
    }
    Ok(())
}

/// Every slot has been dealt with as its schedule says.
pub async fn check(sim: &Sim) -> Result<(), String> {
    for schedule in &sim.triggers().schedules {
        let row = row_of(sim, schedule).await?;
        let found = sim.database().slots(schedule.tenant, schedule.id, ALL).await.map_err(|error| error.to_string())?;
        let slots: BTreeMap<Timestamp, SlotRow> = found.into_iter().map(|slot| (slot.slot_at, slot)).collect();
        for slot in slots.values() {
            lawful(sim, schedule, slot).await.map_err(|what| {
                format!("schedules: the slot {} of {} {what}", slot_text(slot.slot_at), schedule.name)
            })?;
        }
        if schedule.restless {
            continue;
        }
        for expected in schedule.slots_after(row.created_at) {
            // Several that were missed are recorded as one, under the last of them.
            let next = slots.range(expected..).next();
            let is_dealt_with = next.is_some_and(|(at, slot)| *at == expected || slot.state == SlotState::Missed);
            if !is_dealt_with {
                return Err(format!(
                    "schedules: nothing became of the slot {} of {}",
                    slot_text(expected),
                    row.spec.name
                ));
            }
        }
    }
    Ok(())
}

async fn lawful(sim: &Sim, schedule: &ScheduleModel, slot: &SlotRow) -> Result<(), String> {
    if slot.at < slot.slot_at {
        return Err("was dealt with before its time".into());
    }
    match slot.state {
        SlotState::Started => {
            sim.tally.count("slots started");
            let run = slot.run.ok_or("has started no run")?;
            let found = sim.database().run_overview(schedule.tenant, run).await.map_err(|error| error.to_string())?;
            let found = found.ok_or_else(|| format!("has started {run}, which does not exist"))?;
            let inputs: Value = found.inputs.decode().unwrap_or_default();
            let expected = format!("{}@{}", schedule.name, slot_text(slot.slot_at));
            if inputs["order"] != expected.as_str() {
                return Err(format!("has started {run}, which is for {}", inputs["order"]));
            }
            Ok(())
        }
        SlotState::Skipped => {
            sim.tally.count("slots skipped");
            let may = schedule.overlap == Overlap::Skip;
            if may { Ok(()) } else { Err(format!("was skipped: {:?}", slot.note)) }
        }
        SlotState::Missed => {
            sim.tally.count("slots missed");
            let late = slot.at.since(slot.slot_at);
            if late > schedule.catch_up { Ok(()) } else { Err(format!("was missed, {} ms late", late.0)) }
        }
        SlotState::Queued => Err("still waits, and nothing runs".into()),
        SlotState::Failed => Err(format!("has failed: {:?}", slot.note)),
    }
}
