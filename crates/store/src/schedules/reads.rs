use interlock_core::ids::{ScheduleId, TenantId};
use interlock_core::time::{Millis, Timestamp};

use super::{ScheduleRow, ScheduleSpec, SlotRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    pub async fn schedule(&self, tenant: TenantId, id: ScheduleId) -> Result<Option<ScheduleRow>, ReadError> {
        self.found(&sql::SCHEDULE_GET, args![tenant, id], schedule).await
    }

    pub async fn schedule_named(&self, tenant: TenantId, name: &str) -> Result<Option<ScheduleRow>, ReadError> {
        self.found(&sql::SCHEDULE_NAMED, args![tenant, name], schedule).await
    }

    /// By name, after a name.
    pub async fn schedules(&self, tenant: TenantId, after: &str, limit: usize) -> Result<Vec<ScheduleRow>, ReadError> {
        self.every(&sql::SCHEDULES, args![tenant, after, limit], schedule).await
    }

    pub async fn due_schedules(&self, now: Timestamp, limit: usize) -> Result<Vec<ScheduleRow>, ReadError> {
        self.readable(&sql::SCHEDULES_DUE, limit, |limit| args![now, limit], schedule).await
    }

    /// The first slot after an instant.
    pub async fn next_schedule(&self, after: Timestamp) -> Result<Option<Timestamp>, ReadError> {
        self.found(&sql::SCHEDULES_NEXT, args![after], |mut row| row.time("next_at")).await
    }

    /// Newest first.
    pub async fn slots(&self, tenant: TenantId, id: ScheduleId, limit: usize) -> Result<Vec<SlotRow>, ReadError> {
        self.every(&sql::SLOTS, args![tenant, id, limit], slot).await
    }

    /// Those that wait, oldest first.
    pub async fn queued_slots(
        &self,
        tenant: TenantId,
        id: ScheduleId,
        limit: usize,
    ) -> Result<Vec<SlotRow>, ReadError> {
        self.every(&sql::SLOTS_QUEUED, args![tenant, id, limit], slot).await
    }
}

fn schedule(mut row: Row) -> Result<ScheduleRow, CorruptRow> {
    Ok(ScheduleRow {
        tenant: row.id("tenant_id")?,
        id: row.id("schedule_id")?,
        spec: ScheduleSpec {
            name: row.text("name")?,
            workflow: row.text("workflow")?,
            origin: row.name("origin")?,
            cron: row.text("cron")?,
            timezone: row.text("timezone")?,
            dst: row.name("dst")?,
            overlap: row.name("overlap")?,
            catch_up: Millis(row.num("catch_up_ms")?),
            jitter: Millis(row.num("jitter_ms")?),
            inputs: row.json("inputs")?,
            workspace: row.text("workspace")?,
            paused: row.flag("paused")?,
        },
        note: row.opt_text("note")?,
        done_at: row.time("done_at")?,
        next_at: row.opt_time("next_at")?,
        last_run: row.opt_id("last_run_id")?,
        revision: row.num("revision")?,
        created_at: row.time("created_at")?,
        created_by: row.opt_text("created_by")?,
        updated_at: row.time("updated_at")?,
    })
}

fn slot(mut row: Row) -> Result<SlotRow, CorruptRow> {
    Ok(SlotRow {
        slot_at: row.time("slot_at")?,
        state: row.name("state")?,
        run: row.opt_id("run_id")?,
        note: row.opt_text("note")?,
        at: row.time("at")?,
    })
}
