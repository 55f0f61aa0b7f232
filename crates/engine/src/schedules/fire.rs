//! Dealing with one schedule whose time has come. Runs are started under the slot's key before the schedule moves on,
//! so a crash in between, or a second server that looks at the same row, starts nothing twice.

use std::collections::VecDeque;

use interlock_core::ids::RunId;
use interlock_core::keys::TriggerKey;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::run::change::Context;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::schedule::{Missed, Overlap, QUEUED_MAX, SlotState, slot_text};
use interlock_store::{ChangeSchedule, ScheduleRow, SlotRow};

use super::cadence;
use crate::Engine;
use crate::error::EngineError;
use crate::parts::Schedules;

/// How often a schedule looks whether the run that its queue waits for has ended.
const QUEUE_LOOK: Millis = Millis::from_secs(1);
/// How long a schedule that cannot be read rests.
const BROKEN_LOOK: Millis = Millis::from_hours(1);

/// One look at one schedule.
struct Look<'a> {
    engine: &'a Engine,
    row: ScheduleRow,
    now: Timestamp,
    /// The schedule's run that has not ended, if any.
    active: Option<RunId>,
    /// Slots that wait for it, oldest first.
    waiting: VecDeque<Timestamp>,
    /// What became of slots in this look.
    slots: Vec<SlotRow>,
}

pub(crate) async fn fire(engine: &Engine, row: ScheduleRow) -> Result<(), EngineError> {
    let now = engine.now();
    let active = match row.last_run {
        Some(run) if !is_planted(Bug::OverlapNotHeld) => {
            engine.schedules().still_active(row.tenant, run).await?.then_some(run)
        }
        _ => None,
    };
    let queued = engine.0.store.queued_slots(row.tenant, row.id, QUEUED_MAX).await?;
    let waiting = queued.into_iter().map(|slot| slot.slot_at).collect();
    let mut look = Look { engine, row, now, active, waiting, slots: Vec::new() };
    look.deal().await?;
    let Look { mut row, slots, .. } = look;
    row.updated_at = now;
    // Where another server or a person was faster, the next look reads what they wrote.
    engine.0.store.write(ChangeSchedule { row, slots }).await?;
    Ok(())
}

impl Schedules {
    pub(crate) async fn still_active(
        &self,
        tenant: interlock_core::ids::TenantId,
        run: RunId,
    ) -> Result<bool, EngineError> {
        let overview = self.0.0.store.run_overview(tenant, run).await?;
        Ok(overview.is_some_and(|overview| !overview.state.is_terminal()))
    }
}

impl Look<'_> {
    async fn deal(&mut self) -> Result<(), EngineError> {
        let (mut row, now) = (self.row.clone(), self.now);
        if is_planted(Bug::SlotsNotMadeUp) {
            row.done_at = row.done_at.max(now - Millis::from_secs(1));
        }
        let due = self
            .engine
            .evaluate_trigger(row.tenant, move |_| cadence(&row).map(|cadence| cadence.due(row.done_at, now)));
        let due = match due.await.flatten() {
            Ok(due) => due,
            Err(error) => {
                // Made under another release's rules, or for a zone that this machine does not know.
                self.row.note = Some(error.to_string());
                self.row.next_at = Some(self.now + BROKEN_LOOK);
                return Ok(());
            }
        };
        if let Some(missed) = due.missed {
            self.miss(missed);
        }
        for slot in &due.run {
            self.take(slot.at).await?;
            self.row.done_at = slot.at;
        }
        self.work_off().await?;
        let queue_look = (!self.waiting.is_empty()).then_some(self.now + QUEUE_LOOK);
        let next = due.next.map(|slot| slot.starts_at);
        self.row.next_at = next.into_iter().chain(queue_look).min();
        Ok(())
    }

    fn miss(&mut self, missed: Missed) {
        let note = match missed.count {
            1 => "no server was there in time".to_owned(),
            count => format!("no server was there in time for {count} slots since {}", slot_text(missed.first)),
        };
        tracing::warn!(schedule = self.row.spec.name, note, "slots were missed");
        self.record(missed.last, SlotState::Missed, None, Some(note));
        self.row.done_at = missed.last;
    }

    async fn take(&mut self, slot: Timestamp) -> Result<(), EngineError> {
        match (self.row.spec.overlap, self.active) {
            (Overlap::Skip, Some(run)) => {
                self.record(slot, SlotState::Skipped, None, Some(format!("{run} has not ended")));
                Ok(())
            }
            (Overlap::Queue, _) if self.waiting.len() >= QUEUED_MAX => {
                let note = format!("{QUEUED_MAX} slots wait already");
                self.record(slot, SlotState::Skipped, None, Some(note));
                Ok(())
            }
            (Overlap::Queue, _) => {
                self.waiting.push_back(slot);
                self.record(slot, SlotState::Queued, None, None);
                Ok(())
            }
            (Overlap::CancelPrevious, Some(run)) => {
                let reason = format!("schedule {} starts its next run", self.row.spec.name);
                match self.engine.runs().cancel(self.row.tenant, run, reason, false, Context::SYSTEM).await {
                    // It has ended by itself, or was canceled meanwhile.
                    Ok(_) | Err(EngineError::Rejected(_)) => {}
                    Err(error) => return Err(error),
                }
                self.start(slot).await
            }
            (Overlap::Allow | Overlap::Skip | Overlap::CancelPrevious, _) => self.start(slot).await,
        }
    }

    /// Starts what waits, as long as nothing runs.
    async fn work_off(&mut self) -> Result<(), EngineError> {
        while self.active.is_none() {
            let Some(slot) = self.waiting.pop_front() else { return Ok(()) };
            self.start(slot).await?;
        }
        Ok(())
    }

    /// Trouble that passes leaves the whole look to be made again; anything else is the slot's own.
    async fn start(&mut self, slot: Timestamp) -> Result<(), EngineError> {
        let name = self.row.id.to_string();
        let mut key = TriggerKey::Scheduler { schedule: &name, slot: &slot_text(slot) }.render()?;
        if is_planted(Bug::SlotStartedTwice) {
            key.push_str(&self.engine.fresh_id().to_string());
        }
        let by = Context::by(interlock_core::state::Initiator::System);
        match self.engine.schedules().start_slot(&self.row, slot, key, by).await {
            Ok(started) => {
                self.engine.0.counters.slot(started.fresh);
                let running =
                    started.fresh || self.engine.schedules().still_active(self.row.tenant, started.run).await?;
                self.active = running.then_some(started.run);
                self.row.last_run = Some(started.run);
                self.record(slot, SlotState::Started, Some(started.run), None);
                Ok(())
            }
            Err(error) if error.is_transient() => Err(error),
            Err(EngineError::SubjectBusy { subject, run }) => {
                let note = format!("run {run} is active for subject `{subject}`");
                self.record(slot, SlotState::Skipped, None, Some(note));
                Ok(())
            }
            Err(error @ (EngineError::TenantDisabled | EngineError::SubjectElsewhere { .. })) => {
                self.record(slot, SlotState::Skipped, None, Some(error.to_string()));
                Ok(())
            }
            Err(error) => {
                self.engine.0.counters.slot_failed();
                tracing::warn!(schedule = self.row.spec.name, slot = slot_text(slot), %error, "a slot did not start");
                self.record(slot, SlotState::Failed, None, Some(error.to_string()));
                Ok(())
            }
        }
    }

    /// A slot that was queued in this very look and then started is recorded as started.
    fn record(&mut self, slot_at: Timestamp, state: SlotState, run: Option<RunId>, note: Option<String>) {
        let note = note.map(|note| note.chars().take(500).collect());
        self.slots.push(SlotRow { slot_at, state, run, note, at: self.now });
    }
}
