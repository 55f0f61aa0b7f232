//! An address as it goes over the wire, without its secret; and what an event started.

use interlock_engine::webhooks::{SkippedRun as Skipped, StartedRun};
use interlock_protocol::webhooks::{DeliveredRun, InboundView, SkippedRun, path};
use interlock_store::InboundRow;

pub fn endpoint(row: InboundRow) -> InboundView {
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
