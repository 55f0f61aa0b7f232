//! An address as it goes over the wire, without its secret; and what an event started.

use interlock_engine::webhooks::{SkippedRun as Skipped, StartedRun};
use interlock_protocol::webhooks::{DeliveredRun, InboundView, SkippedRun, path};
use interlock_store::InboundRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::identity::key_names::name_keys;
use crate::state::AppState;

/// An address for a caller, with the name of the key that made it.
pub async fn endpoint(state: &AppState, caller: &Caller, row: InboundRow) -> Result<InboundView, ApiError> {
    let mut endpoint = inbound(row);
    name_keys(state, caller, endpoint.created_by.iter_mut().collect()).await?;
    Ok(endpoint)
}

/// The same for all of them.
pub async fn endpoints(state: &AppState, caller: &Caller, rows: Vec<InboundRow>) -> Result<Vec<InboundView>, ApiError> {
    let mut endpoints: Vec<InboundView> = rows.into_iter().map(inbound).collect();
    name_keys(state, caller, endpoints.iter_mut().filter_map(|row| row.created_by.as_mut()).collect()).await?;
    Ok(endpoints)
}

fn inbound(row: InboundRow) -> InboundView {
    InboundView {
        endpoint_id: row.id,
        path: path::INBOUND_ONE.replace("{endpoint}", &row.id.to_string()),
        name: row.name,
        source: row.source,
        header: row.header,
        secondary: row.secondary,
        paused: row.paused,
        previous_secret_until: row.secrets.previous.map(|(_, until)| until),
        created_at: row.created_at,
        created_by: row.created_by,
    }
}

/// The runs that an event started, and the workflows that it did not start.
pub fn runs_of(started: Vec<StartedRun>, skipped: Vec<Skipped>) -> (Vec<DeliveredRun>, Vec<SkippedRun>) {
    let started = started.into_iter().map(|StartedRun { workflow, run_id }| DeliveredRun { workflow, run_id });
    let skipped = skipped.into_iter().map(|Skipped { workflow, code, reason, run_id }| SkippedRun {
        workflow,
        code,
        reason,
        run_id,
    });
    (started.collect(), skipped.collect())
}
