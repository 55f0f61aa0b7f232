//! A run of a schedule that a person or a program asks for, at any time.

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_core::keys::TriggerKey;
use interlock_core::run::change::Context;
use interlock_core::state::Admission;
use serde_json::json;

use super::{CLIENT, NextLook};
use crate::commands::repeated::hash_of;
use crate::error::EngineError;
use crate::parts::Schedules;
use crate::{IdempotencyKey, StartWorkflow, Started};

/// A request to start a run of a schedule now.
#[derive(Debug, Clone)]
pub struct TriggerSchedule {
    pub tenant: TenantId,
    /// The schedule, by its id or its name.
    pub schedule: String,
    /// Where the caller knows this workspace only: the schedules of others do not exist for it.
    pub within: Option<String>,
    pub idempotency: Option<IdempotencyKey>,
    pub by: Context,
}

impl Schedules {
    /// Starts a run now, whatever the clock and the overlap policy say. A repeat under the key of the request is answered with
    /// the run of the first time, also where the schedule is gone.
    #[boxed]
    pub async fn trigger(&self, request: TriggerSchedule) -> Result<Started, EngineError> {
        let TriggerSchedule { tenant, schedule, within, idempotency, by } = request;
        let asked = hash_of(&json!({ "schedule": schedule, "within": within }))?;
        if let Some(first) = self.0.runs().recorded(tenant, idempotency.as_ref(), asked).await? {
            return Ok(first);
        }
        let row = self.get(tenant, &schedule).await?;
        if within.is_some_and(|workspace| workspace != row.spec.workspace) {
            return Err(EngineError::UnknownSchedule { name: schedule.chars().take(80).collect() });
        }
        // Hashed, so that the longest key there may be fits behind the schedule's id.
        let name = match &idempotency {
            Some(IdempotencyKey { client, key }) => Hash::of(format!("{client}:{key}").as_bytes()).to_string(),
            None => self.0.fresh_id().to_string(),
        };
        let slot = format!("now:{name}");
        let key = TriggerKey::Scheduler { schedule: &row.id.to_string(), slot: &slot }.render()?;
        if idempotency.is_some()
            && let Some(run) = self.made_by_earlier_release(tenant, &key).await?
        {
            return Ok(Started { run, replayed: true, admission: Admission::Started });
        }
        let start = self.slot_start(&row, self.0.now(), &key, by).await?;
        let start = StartWorkflow { idempotency, fingerprint: Some(asked), ..start };
        let started = self.0.runs().start_workflow(start).await?;
        // The run's own events tell of it.
        let noted = self
            .change_schedule(tenant, &row.id.to_string(), None, |row, _| {
                row.last_run = Some(started.run);
                NextLook::AsItIs
            })
            .await;
        match noted {
            // It was removed meanwhile; the run is there.
            Ok(_) | Err(EngineError::UnknownSchedule { .. }) => Ok(started),
            Err(error) => Err(error),
        }
    }

    /// Servers of earlier releases have kept their answer under the slot's key.
    async fn made_by_earlier_release(&self, tenant: TenantId, slot_key: &str) -> Result<Option<RunId>, EngineError> {
        let record = self.0.0.store.idempotency(tenant, CLIENT, slot_key).await?;
        Ok(record.and_then(|record| record.run))
    }
}
