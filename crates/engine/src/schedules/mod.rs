//! Schedules: what people and workflow files ask of them. [`fire`] deals with those that have come.

pub(crate) mod fire;
pub(crate) mod follow;
mod trigger;

use interlock_boxed::boxed;
use interlock_core::ids::{ScheduleId, TenantId};
use interlock_core::json::Json;
use interlock_core::limits;
use interlock_core::planted::{Bug, is_planted};
use interlock_core::rejection::Rejection;
use interlock_core::run::Trigger;
use interlock_core::run::change::Context;
use interlock_core::time::Timestamp;
use interlock_core::trigger::Origin;
use interlock_core::trigger::schedule::{
    CATCH_UP_MAX, Cadence, Cron, JITTER_MAX, Slot, TimeZone, slot_text, wrong_name,
};
use interlock_store::{
    AddSchedule, ChangeSchedule, Changed, FinishIdempotency, RemoveSchedule, ScheduleRow, ScheduleSpec, Stored,
};
use serde_json::json;

use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Schedules;
use crate::triggers::TriggeredRun;
use crate::workflows::author;
use crate::{IdempotencyKey, StartWorkflow};

pub use trigger::TriggerSchedule;

/// The client that the idempotency keys of slots belong to.
pub(crate) const CLIENT: &str = "scheduler";
/// How often a change is tried again after another change came first.
const ROUNDS_MAX: usize = 8;
/// Slots that one preview shows.
pub const UPCOMING_MAX: usize = 100;

impl Schedules {
    /// A schedule as it would be made now: checked, and not stored. Slots count from now on.
    #[boxed]
    pub async fn draft(
        &self,
        tenant: TenantId,
        spec: ScheduleSpec,
        created_by: Option<String>,
    ) -> Result<ScheduleRow, EngineError> {
        let now = self.0.now();
        let mut row = ScheduleRow {
            tenant,
            id: ScheduleId(self.0.fresh_id()),
            spec,
            note: None,
            done_at: now,
            next_at: None,
            last_run: None,
            revision: 1,
            created_at: now,
            created_by,
            updated_at: now,
        };
        row = self
            .0
            .evaluate_trigger(tenant, move |_| {
                check(&row)?;
                row.next_at = next_look(&row, now)?;
                Ok::<_, EngineError>(row)
            })
            .await??;
        self.check_room(tenant, 1, |_| true).await?;
        Ok(row)
    }

    /// Refuses more schedules than a tenant may have. `stays` says which of those that are there will be there then too.
    pub(super) async fn check_room(
        &self,
        tenant: TenantId,
        more: usize,
        stays: impl Fn(&ScheduleRow) -> bool,
    ) -> Result<(), EngineError> {
        let rows = self.0.0.store.schedules(tenant, "", limits::SCHEDULES_MAX).await?;
        if rows.iter().filter(|row| stays(row)).count() + more > limits::SCHEDULES_MAX {
            let what = format!("a tenant has at most {} schedules; remove one first", limits::SCHEDULES_MAX);
            return Err(Rejection::InvalidInput { what }.into());
        }
        Ok(())
    }

    /// Stores a schedule, with the answer to the request that asks for it.
    #[boxed]
    pub async fn add(
        &self,
        row: ScheduleRow,
        by: &Actor,
        answer: Option<FinishIdempotency>,
    ) -> Result<(), EngineError> {
        let (name, what) = (row.spec.name.clone(), by.did("schedule.created", row.id, &details(&row)));
        match self.0.write_answering(row.tenant, AddSchedule(row), what, answer).await? {
            Stored::Stored => {
                self.0.0.schedules.look();
                Ok(())
            }
            Stored::Duplicate => Err(EngineError::NameTaken { what: "schedule", name }),
        }
    }

    /// A schedule by its id or its name.
    #[boxed]
    pub async fn get(&self, tenant: TenantId, named: &str) -> Result<ScheduleRow, EngineError> {
        let reads = self.0.0.store.on_behalf_of(tenant);
        let found = match named.parse::<ScheduleId>() {
            Ok(id) => reads.schedule(tenant, id).await?,
            Err(_) => reads.schedule_named(tenant, named).await?,
        };
        found.ok_or_else(|| EngineError::UnknownSchedule { name: named.chars().take(80).collect() })
    }

    /// No slot runs until it is resumed; those that pass meanwhile are left out.
    #[boxed]
    pub async fn pause(
        &self,
        tenant: TenantId,
        named: &str,
        why: Option<String>,
        by: &Actor,
    ) -> Result<ScheduleRow, EngineError> {
        self.change_schedule(tenant, named, Some(by), |row, _| {
            (row.spec.paused, row.next_at) = (true, None);
            row.note.clone_from(&why);
            NextLook::AsItIs
        })
        .await
    }

    #[boxed]
    pub async fn resume(&self, tenant: TenantId, named: &str, by: &Actor) -> Result<ScheduleRow, EngineError> {
        self.change_schedule(tenant, named, Some(by), |row, now| {
            if row.spec.paused {
                (row.spec.paused, row.note, row.done_at) = (false, None, now);
            }
            NextLook::Anew
        })
        .await
    }

    #[boxed]
    pub async fn remove(&self, tenant: TenantId, named: &str, by: &Actor) -> Result<(), EngineError> {
        let row = self.get(tenant, named).await?;
        if row.spec.origin == Origin::Workflow {
            let what = format!(
                "schedule `{}` stands in the file of workflow `{}`; take it out there, or pause it here",
                row.spec.name, row.spec.workflow
            );
            return Err(Rejection::InvalidInput { what }.into());
        }
        self.remove_row(&row, by).await
    }

    async fn remove_row(&self, row: &ScheduleRow, by: &Actor) -> Result<(), EngineError> {
        let what = by.did("schedule.removed", row.id, &details(row));
        self.0.write_noted(row.tenant, RemoveSchedule { tenant: row.tenant, schedule: row.id }, what).await?;
        Ok(())
    }

    /// What a schedule will do, as far as the clock tells. A search: for [`Engine::evaluate`], not for an async thread.
    pub fn upcoming(row: &ScheduleRow, after: Timestamp, count: usize) -> Result<Vec<Slot>, EngineError> {
        let cadence = cadence(row)?;
        let first = cadence.next(after);
        let slots = std::iter::successors(first, |slot| cadence.next(slot.at));
        Ok(slots.take(count.min(UPCOMING_MAX)).collect())
    }

    /// Whether slots wait for the run before them.
    async fn has_queued(&self, row: &ScheduleRow) -> Result<bool, EngineError> {
        let queued = self.0.0.store.queued_slots(row.tenant, row.id, 1).await?;
        Ok(!queued.is_empty() && !is_planted(Bug::ResumeForgetsQueue))
    }

    /// Changes what was read, and reads again where another change came first. Where a person or a key asks for the
    /// change, it is noted in the audit log.
    pub(crate) async fn change_schedule(
        &self,
        tenant: TenantId,
        named: &str,
        by: Option<&Actor>,
        mut change: impl FnMut(&mut ScheduleRow, Timestamp) -> NextLook + Send,
    ) -> Result<ScheduleRow, EngineError> {
        for _ in 0..ROUNDS_MAX {
            let mut row = self.get(tenant, named).await?;
            let now = self.0.now();
            if change(&mut row, now) == NextLook::Anew {
                row = self
                    .0
                    .evaluate_trigger(tenant, move |_| {
                        row.next_at = next_look(&row, now)?;
                        Ok::<_, EngineError>(row)
                    })
                    .await??;
                if !row.spec.paused && self.has_queued(&row).await? {
                    // What waits is looked at now, however far away the next slot is.
                    row.next_at = Some(now);
                }
            }
            row.updated_at = now;
            let change = ChangeSchedule { row: row.clone(), slots: Vec::new() };
            let changed = match by {
                Some(by) => {
                    let what = by.did("schedule.changed", row.id, &details(&row));
                    self.0.write_noted(tenant, change, what).await?
                }
                None => self.0.0.store.write(change).await?,
            };
            if changed == Changed::Done {
                row.revision += 1;
                self.0.0.schedules.look();
                return Ok(row);
            }
        }
        Err(EngineError::Overloaded)
    }
}

/// What the audit log tells of a schedule. Its inputs are the workflow's business, and may be anything.
fn details(row: &ScheduleRow) -> serde_json::Value {
    let ScheduleSpec { name, workflow, cron, timezone, workspace, paused, .. } = &row.spec;
    json!({
        "name": name, "workflow": workflow, "cron": cron, "timezone": timezone, "workspace": workspace,
        "paused": paused, "reason": row.note,
    })
}

/// Whether a change makes the loop look at a schedule at another time than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextLook {
    AsItIs,
    /// The next slot is searched for, off the async threads.
    Anew,
}

/// Everything about the row that does not depend on the instant.
pub(crate) fn check(row: &ScheduleRow) -> Result<(), EngineError> {
    let invalid = |what: String| Err(Rejection::InvalidInput { what }.into());
    if let Some(wrong) = wrong_name(&row.spec.name) {
        return invalid(wrong);
    }
    if row.spec.workspace.is_empty() || row.spec.workspace.len() > limits::NAME_BYTES_MAX {
        return invalid(format!("the name of a workspace has 1 to {} bytes", limits::NAME_BYTES_MAX));
    }
    if row.spec.jitter > JITTER_MAX {
        return invalid(format!("the jitter is {} ms, the limit is {} ms", row.spec.jitter.0, JITTER_MAX.0));
    }
    if row.spec.catch_up > CATCH_UP_MAX {
        return invalid(format!(
            "the catch-up window is {} ms, the limit is {} ms",
            row.spec.catch_up.0, CATCH_UP_MAX.0
        ));
    }
    if row.spec.inputs.len() > limits::PAYLOAD_BYTES_MAX {
        let (what, max) = ("the inputs", limits::PAYLOAD_BYTES_MAX);
        return Err(Rejection::TooLarge { what, bytes: row.spec.inputs.len(), max }.into());
    }
    if !cadence(row)?.ever_comes() {
        let (cron, zone) = (&row.spec.cron, &row.spec.timezone);
        return invalid(format!(
            "`{cron}` would never run: the clocks of {zone} leave that time out, and `dst` is skip"
        ));
    }
    Ok(())
}

pub(crate) fn cadence(row: &ScheduleRow) -> Result<Cadence, EngineError> {
    let invalid = |what: String| EngineError::from(Rejection::InvalidInput { what });
    let cron: Cron = row
        .spec
        .cron
        .parse()
        .map_err(|error: interlock_core::trigger::schedule::InvalidCron| invalid(error.to_string()))?;
    let zone = TimeZone::get(&row.spec.timezone).map_err(|_| {
        invalid(format!("there is no time zone `{}`; use a name such as `Europe/Berlin` or `UTC`", row.spec.timezone))
    })?;
    let (dst, jitter, catch_up) = (row.spec.dst, row.spec.jitter, row.spec.catch_up);
    Ok(Cadence { cron, zone, dst, jitter, catch_up, seed: *row.id.as_bytes() })
}

/// When the loop has to look at it.
pub(crate) fn next_look(row: &ScheduleRow, now: Timestamp) -> Result<Option<Timestamp>, EngineError> {
    if row.spec.paused {
        return Ok(None);
    }
    let next = cadence(row)?.next(row.done_at.max(now - row.spec.catch_up));
    Ok(next.map(|slot| slot.starts_at))
}

impl Schedules {
    /// Refuses a schedule whose every slot would fail: its workflow is not there, or does not take such inputs.
    #[boxed]
    pub async fn check_slot(
        &self,
        tenant: TenantId,
        schedule: &str,
        workflow: &str,
        inputs: &Json,
    ) -> Result<(), EngineError> {
        let workflow = self.0.runs().workflow_to_start(tenant, workflow, None).await?;
        let inputs = self.slot_inputs(tenant, schedule, inputs, self.0.now(), "check").await?;
        let invalid = |what: String| EngineError::from(Rejection::InvalidInput { what });
        let given = inputs.to_exact_value().map_err(|error| invalid(format!("the inputs: {error}")))?;
        self.0.runs().bind_inputs(tenant, &workflow, given).await.map(|_| ())
    }

    async fn slot_inputs(
        &self,
        tenant: TenantId,
        schedule: &str,
        inputs: &Json,
        slot: Timestamp,
        key: &str,
    ) -> Result<Json, EngineError> {
        let trigger = json!({ "kind": "schedule", "schedule": schedule, "slot": slot_text(slot), "key": key });
        self.0.render_inputs(tenant, inputs, json!({ "trigger": trigger })).await
    }

    /// Starts a slot's run, once.
    pub(crate) async fn start_slot(
        &self,
        row: &ScheduleRow,
        slot: Timestamp,
        key: String,
        by: Context,
    ) -> Result<TriggeredRun, EngineError> {
        let start = self.slot_start(row, slot, &key, by).await?;
        let idempotency = Some(IdempotencyKey { client: CLIENT.into(), key });
        self.0.start_keyed(StartWorkflow { idempotency, ..start }).await
    }

    /// The start of a run for a slot, still without a key of its own.
    async fn slot_start(
        &self,
        row: &ScheduleRow,
        slot: Timestamp,
        key: &str,
        by: Context,
    ) -> Result<StartWorkflow, EngineError> {
        let inputs = self.slot_inputs(row.tenant, &row.spec.name, &row.spec.inputs, slot, key).await?;
        Ok(StartWorkflow {
            workspace: Some(row.spec.workspace.clone()),
            trigger: Trigger { kind: "schedule".into(), reference: Some(key.to_owned()) },
            started_by: author(row.created_by.clone()),
            by,
            ..StartWorkflow::new(row.tenant, row.spec.workflow.clone(), inputs)
        })
    }
}
