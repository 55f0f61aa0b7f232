//! Schedules that stand in workflow files follow them: made, changed and removed with the newest version.

use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_core::time::Millis;
use interlock_core::trigger::Origin;
use interlock_core::trigger::schedule::{CATCH_UP_DEFAULT, DstPolicy, Overlap};
use interlock_store::{ScheduleRow, ScheduleSpec};
use interlock_workflow::definition::{Definition, Schedule};

use super::NextLook;
use crate::Engine;
use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Schedules;
use crate::workflows::WorkflowVersion;

const PAGE: usize = 200;
const DEFAULT_ZONE: &str = "UTC";
const DEFAULT_WORKSPACE: &str = "default";

/// Every tenant's files, once at the start: a server may have died between applying a file and following it.
pub(crate) async fn all(engine: &Engine) -> Result<(), EngineError> {
    for tenant in engine.0.store.tenants().await? {
        let mut after: Option<String> = None;
        loop {
            let page = engine.0.store.list_workflows(tenant.id, after.as_deref(), PAGE).await?;
            let full = page.len() == PAGE;
            after = page.last().map(|row| row.name.clone());
            for row in page {
                // One that cannot be followed does not hold up the others.
                if let Err(error) = follow(engine, tenant.id, &row.name).await {
                    tracing::warn!(tenant = %tenant.id, workflow = row.name, %error, "schedules cannot be followed");
                }
            }
            if !full {
                break;
            }
        }
    }
    Ok(())
}

async fn follow(engine: &Engine, tenant: TenantId, workflow: &str) -> Result<(), EngineError> {
    match engine.workflows().latest(tenant, workflow).await? {
        Some(version) => engine.schedules().follow_schedules(tenant, &version, &Actor::system()).await,
        None => Ok(()),
    }
}

impl Schedules {
    /// Refuses a version of a workflow whose schedules would be too many, before it is stored.
    pub(crate) async fn check_room_of(&self, tenant: TenantId, definition: &Definition) -> Result<(), EngineError> {
        let wanted = definition.on.as_ref().map_or(0, |on| on.schedule.0.len());
        if wanted == 0 {
            return Ok(());
        }
        self.check_room(tenant, wanted, |row| !is_of(row, &definition.name.0)).await
    }

    /// Brings the schedules of a workflow to what its newest version says.
    pub(crate) async fn follow_schedules(
        &self,
        tenant: TenantId,
        version: &WorkflowVersion,
        by: &Actor,
    ) -> Result<(), EngineError> {
        let on = version.definition.on.as_ref();
        let wanted: Vec<ScheduleSpec> = on.map_or_else(Vec::new, |on| {
            on.schedule.0.iter().enumerate().map(|(index, schedule)| wanted(version, index, schedule)).collect()
        });
        let mut kept = self.of_workflow(tenant, &version.name).await?;
        for new in wanted {
            match kept.iter().position(|row| row.spec.name == new.name) {
                Some(index) => {
                    let row = kept.swap_remove(index);
                    if row.spec != follows(&row.spec, &new) {
                        self.change_to(&row, &new, by).await?;
                    }
                }
                None => match self.create(tenant, new, version.created_by.clone(), by).await {
                    Ok(()) => {}
                    // A person has made one of that name by hand, or another server follows the same file.
                    Err(EngineError::NameTaken { name, .. }) => {
                        tracing::warn!(schedule = name, workflow = version.name, "the name of a schedule is taken");
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        for row in kept {
            self.remove_row(&row, by).await?;
        }
        Ok(())
    }

    async fn of_workflow(&self, tenant: TenantId, workflow: &str) -> Result<Vec<ScheduleRow>, EngineError> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.0.0.store.schedules(tenant, &after, PAGE).await?;
            let full = page.len() == PAGE;
            after = page.last().map(|row| row.spec.name.clone()).unwrap_or_default();
            found.extend(page.into_iter().filter(|row| is_of(row, workflow)));
            if !full {
                return Ok(found);
            }
        }
    }

    async fn create(
        &self,
        tenant: TenantId,
        spec: ScheduleSpec,
        created_by: Option<String>,
        by: &Actor,
    ) -> Result<(), EngineError> {
        let row = self.draft(tenant, spec, created_by).await?;
        self.add(row, by, None).await
    }

    /// What an operator has paused stays paused.
    async fn change_to(&self, row: &ScheduleRow, new: &ScheduleSpec, by: &Actor) -> Result<(), EngineError> {
        self.change_schedule(row.tenant, &row.id.to_string(), Some(by), |row, now| {
            let moved = row.spec.cron != new.cron || row.spec.timezone != new.timezone || row.spec.dst != new.dst;
            row.spec = follows(&row.spec, new);
            if moved {
                row.done_at = now;
            }
            NextLook::Anew
        })
        .await
        .map(|_| ())
    }
}

/// Whether a schedule stands in the file of a workflow.
fn is_of(row: &ScheduleRow, workflow: &str) -> bool {
    row.spec.origin == Origin::Workflow && row.spec.workflow == workflow
}

/// What a schedule says once it follows its file.
fn follows(spec: &ScheduleSpec, new: &ScheduleSpec) -> ScheduleSpec {
    ScheduleSpec { workspace: spec.workspace.clone(), paused: spec.paused, ..new.clone() }
}

fn wanted(version: &WorkflowVersion, index: usize, schedule: &Schedule) -> ScheduleSpec {
    let inputs: serde_json::Map<_, _> =
        schedule.inputs.0.iter().map(|(key, template)| (key.name.clone(), template.to_json())).collect();
    ScheduleSpec {
        name: schedule.name_at(&version.name, index),
        workflow: version.name.clone(),
        origin: Origin::Workflow,
        cron: schedule.cron.value.clone(),
        timezone: schedule.timezone.as_ref().map_or_else(|| DEFAULT_ZONE.to_owned(), |zone| zone.value.clone()),
        dst: schedule.dst.unwrap_or(DstPolicy::Once),
        overlap: schedule.overlap.unwrap_or(Overlap::Skip),
        catch_up: schedule.catch_up.map_or(CATCH_UP_DEFAULT, |span| span.value),
        jitter: schedule.jitter.map_or(Millis::ZERO, |span| span.value),
        inputs: Json::trusted(serde_json::Value::Object(inputs).to_string()),
        workspace: DEFAULT_WORKSPACE.to_owned(),
        paused: schedule.paused.unwrap_or(false),
    }
}
