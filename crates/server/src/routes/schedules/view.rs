//! A schedule's row as it goes over the wire.

use interlock_core::time::Timestamp;
use interlock_core::trigger::schedule::{Slot, TimeZone, slot_text};
use interlock_engine::parts::Schedules;
use interlock_protocol::schedules::{PastSlot, ScheduleView, SlotView};
use interlock_store::{ScheduleRow, SlotRow};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::state::AppState;

/// A schedule for a caller, with its next slot and the name of the key that made it.
pub async fn schedule(state: &AppState, caller: &Caller, row: ScheduleRow) -> Result<ScheduleView, ApiError> {
    let now = state.now();
    let mut schedule = state.evaluate(row.tenant, move |_| shown(row, now)).await?;
    name_keys(state, caller, schedule.created_by.iter_mut().collect()).await?;
    Ok(schedule)
}

/// The same for a page of them: slots are searched for, and that is no work for an async thread.
pub async fn schedules(
    state: &AppState,
    caller: &Caller,
    rows: Vec<ScheduleRow>,
) -> Result<Vec<ScheduleView>, ApiError> {
    let now = state.now();
    let mut schedules: Vec<ScheduleView> =
        state.evaluate(caller.tenant, move |_| rows.into_iter().map(|row| shown(row, now)).collect()).await?;
    name_keys(state, caller, schedules.iter_mut().filter_map(|row| row.created_by.as_mut()).collect()).await?;
    Ok(schedules)
}

fn shown(row: ScheduleRow, now: Timestamp) -> ScheduleView {
    let next = if row.spec.paused { None } else { upcoming(&row, now.max(row.done_at), 1).into_iter().next() };
    let description =
        row.spec.cron.parse().map(|cron: interlock_core::trigger::schedule::Cron| cron.describe()).unwrap_or_default();
    ScheduleView {
        schedule_id: row.id,
        name: row.spec.name,
        workflow: row.spec.workflow,
        origin: row.spec.origin,
        cron: row.spec.cron,
        description,
        timezone: row.spec.timezone,
        dst: row.spec.dst,
        overlap: row.spec.overlap,
        catch_up_ms: row.spec.catch_up,
        jitter_ms: row.spec.jitter,
        inputs: row.spec.inputs,
        workspace: row.spec.workspace,
        paused: row.spec.paused,
        note: row.note,
        next,
        last_run_id: row.last_run,
        created_at: row.created_at,
        created_by: row.created_by,
    }
}

/// The next slots of a schedule, and the schedule.
pub async fn next_slots(
    state: &AppState,
    row: ScheduleRow,
    count: usize,
) -> Result<(ScheduleRow, Vec<SlotView>), ApiError> {
    let (tenant, after) = (row.tenant, state.now().max(row.done_at));
    let found = state.evaluate(tenant, move |_| {
        let slots = upcoming(&row, after, count);
        (row, slots)
    });
    Ok(found.await?)
}

/// The next slots; none of a schedule that cannot be read any more.
fn upcoming(row: &ScheduleRow, after: Timestamp, count: usize) -> Vec<SlotView> {
    let slots = Schedules::upcoming(row, after, count).unwrap_or_default();
    slots.into_iter().map(|slot| slot_view(slot, &row.spec.timezone)).collect()
}

fn slot_view(slot: Slot, timezone: &str) -> SlotView {
    let utc = slot_text(slot.at);
    let zone = TimeZone::get(timezone).ok();
    let local = zone.zip(utc.parse::<jiff::Timestamp>().ok()).map(|(zone, at)| {
        let zoned = at.to_zoned(zone);
        zoned.strftime("%a %Y-%m-%d %H:%M:%S %Z (%:z)").to_string()
    });
    SlotView { at: slot.at, starts_at: slot.starts_at, local: local.unwrap_or_else(|| utc.clone()), utc }
}

pub fn past(row: SlotRow) -> PastSlot {
    PastSlot { at: row.slot_at, utc: slot_text(row.slot_at), state: row.state, run_id: row.run, note: row.note }
}
