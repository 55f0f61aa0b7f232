use interlock_core::ids::{ScheduleId, TenantId};

use super::{ScheduleRow, SlotRow, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::{Value, args};
use crate::write::{Changed, Stored, Write, boxed, changed, stored};

/// [`Stored::Duplicate`] where the name is taken.
#[derive(Debug, Clone)]
pub struct AddSchedule(pub ScheduleRow);

impl Write for AddSchedule {
    type Answer = Stored;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Stored, DbError> {
        stored(db, &sql::SCHEDULE_ADD, new_schedule(&self.0)).await
    }
}

/// Everything but identity, guarded by the revision that was read; with it what became of slots.
#[derive(Debug, Clone)]
pub struct ChangeSchedule {
    pub row: ScheduleRow,
    pub slots: Vec<SlotRow>,
}

impl Write for ChangeSchedule {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let row = &self.row;
        let values = args![
            &row.spec.workflow,
            &row.spec.cron,
            &row.spec.timezone,
            row.spec.dst.as_str(),
            row.spec.overlap.as_str(),
            row.spec.catch_up,
            row.spec.jitter,
            &row.spec.inputs,
            &row.spec.workspace,
            row.spec.paused,
            row.note.as_ref(),
            row.done_at,
            row.next_at,
            row.last_run,
            row.updated_at,
            row.tenant,
            row.id,
            row.revision
        ];
        if db.execute(&sql::SCHEDULE_CHANGE, values).await? == 0 {
            return Ok(Changed::Gone);
        }
        for slot in &self.slots {
            let values =
                args![row.tenant, row.id, slot.slot_at, slot.state.as_str(), slot.run, slot.note.as_ref(), slot.at];
            db.execute(&sql::SLOT_PUT, values).await?;
        }
        Ok(Changed::Done)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct RemoveSchedule {
    pub tenant: TenantId,
    pub schedule: ScheduleId,
}

impl Write for RemoveSchedule {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        db.execute(&sql::SCHEDULE_SLOTS_REMOVE, args![self.tenant, self.schedule]).await?;
        changed(db, &sql::SCHEDULE_REMOVE, args![self.tenant, self.schedule]).await
    }
}

fn new_schedule(row: &ScheduleRow) -> Vec<Value> {
    args![
        row.tenant,
        row.id,
        &row.spec.name,
        &row.spec.workflow,
        row.spec.origin.as_str(),
        &row.spec.cron,
        &row.spec.timezone,
        row.spec.dst.as_str(),
        row.spec.overlap.as_str(),
        row.spec.catch_up,
        row.spec.jitter,
        &row.spec.inputs,
        &row.spec.workspace,
        row.spec.paused,
        row.note.as_ref(),
        row.done_at,
        row.next_at,
        row.last_run,
        row.revision,
        row.created_at,
        row.created_by.as_ref(),
        row.updated_at
    ]
}
