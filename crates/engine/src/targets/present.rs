//! The present state of what an approval's actions would change, read once, right after people were asked.

use std::time::Duration;

use interlock_connectors::send::Operation;
use interlock_connectors::{Connector, bound, find};
use interlock_core::ids::{ApprovalId, TenantId};
use interlock_core::json::Json;
use interlock_core::run::approval::Approval;
use interlock_core::run::card::{ActionCard, FieldChange, PresentState};
use interlock_core::state::{ApprovalState, StepKind};
use interlock_store::{ApprovalRow, RecordPresentState};
use tokio::time::timeout;
use tracing::debug;

use crate::Engine;
use crate::error::EngineError;
use crate::payloads::reference::PAYLOAD_MARK;

/// How long one target may take.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Actions of one approval whose present state is read.
const ACTIONS_MAX: usize = 10;
/// The longest text of all changes together; what is longer is not shown.
const CHANGES_BYTES_MAX: usize = 16 << 10;

/// The connector that carries the action out, where it can read the target's present state.
fn reader(action: &ActionCard) -> Option<&'static dyn Connector> {
    let is_call = action.kind == StepKind::Connector && action.unknown.is_none();
    is_call.then(|| find(&action.operation)).flatten().filter(|connector| connector.declaration().reads_before)
}

impl Engine {
    /// Reads it in the background. Where too many are read already it is left out.
    pub(crate) fn read_present_state_in_background(&self, tenant: TenantId, approval: &Approval) {
        let is_new = approval.state == ApprovalState::Requested && approval.votes.is_empty();
        let reads =
            approval.action.as_deref().is_some_and(|action| action.actions().any(|part| reader(part).is_some()));
        if !is_new || !reads {
            return;
        }
        let Ok(place) = self.0.targets.places.clone().try_acquire_owned() else {
            debug!(approval = %approval.id, "too many targets are asked; the present state is left unread");
            return;
        };
        let (engine, id) = (self.clone(), approval.id);
        self.0.tasks.spawn(async move {
            let read = engine.with_present_state(tenant, id).await;
            if let Err(error) = read {
                debug!(%error, approval = %id, "the present state was not recorded");
            }
            drop(place);
        });
    }

    /// The approval with the present state, which is read now where that was not done.
    pub(crate) async fn with_present_state(
        &self,
        tenant: TenantId,
        id: ApprovalId,
    ) -> Result<Option<ApprovalRow>, EngineError> {
        let Some(row) = self.0.store.approval(tenant, id).await? else { return Ok(None) };
        let is_open = row.state == ApprovalState::Requested && row.present_state.is_none();
        let action = row.action.as_ref().filter(|_| is_open).and_then(|action| action.decode::<ActionCard>().ok());
        let Some(action) = action else { return Ok(Some(row)) };
        let run = self.0.store.load_runs(&[(tenant, row.run)]).await?.pop();
        let Some(environment) = run.map(|run| run.plan.environment()) else { return Ok(Some(row)) };
        let mut states = Vec::new();
        for part in action.actions().take(ACTIONS_MAX) {
            let Some(connector) = reader(part) else { continue };
            let (changes, failed) = match self.changes((tenant, environment), connector, &part.input).await {
                Ok(changes) => (changes, None),
                Err(why) => (Vec::new(), Some(why)),
            };
            states.push(PresentState { step: part.step.clone(), read_at: self.now(), changes, failed });
        }
        if states.is_empty() {
            return Ok(Some(row));
        }
        let present_state = Json::of(&states).map_err(|error| EngineError::Store(error.to_string()))?;
        self.0.store.write(RecordPresentState { tenant, approval: id, present_state }).await?;
        Ok(self.0.store.approval(tenant, id).await?)
    }

    async fn changes(
        &self,
        (tenant, environment): (TenantId, &str),
        connector: &'static dyn Connector,
        input: &Json,
    ) -> Result<Vec<FieldChange>, String> {
        let caller = self.0.targets.caller.get().ok_or("this server has no connections to other systems")?;
        if input.as_str().contains(PAYLOAD_MARK) {
            return Err("what the action is done with is too long".to_owned());
        }
        let fields = bound(connector, input.to_exact_value()?)?;
        let secrets = caller.step_in(tenant, environment);
        let operation = Operation { connector, fields: &fields, secrets: &secrets };
        let read = timeout(READ_TIMEOUT, caller.before(operation)).await;
        secrets.end().await;
        let before = match read {
            Ok(Ok(before)) => before.ok_or("there is nothing to read")?,
            Ok(Err(failure)) => return Err(failure.message),
            Err(_) => return Err(format!("no answer within {} s", READ_TIMEOUT.as_secs())),
        };
        let changes = connector.changes(&fields, &before);
        let bytes: usize =
            changes.iter().map(|change| change.before.as_str().len() + change.after.as_str().len()).sum();
        if bytes > CHANGES_BYTES_MAX {
            return Err(format!("it is longer than {CHANGES_BYTES_MAX} bytes"));
        }
        Ok(changes)
    }
}
