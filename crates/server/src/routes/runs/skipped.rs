//! Workers that are connected and are passed over for a run's current step, each with its reason.

use std::sync::Arc;

use interlock_core::limits::SKIPPED_WORKERS_MAX;
use interlock_core::run::Run;
use interlock_core::run::skipped_worker::{SkipReason, SkippedWorker};
use interlock_core::run::why::Heartbeat;
use interlock_core::state::WorkerState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Skills;
use interlock_core::work::fault::WorkerFault;
use interlock_store::SessionRow;

/// When it is looked at, and how long a fault keeps commands from a worker.
#[derive(Clone, Copy)]
pub struct LookedAt {
    pub now: Timestamp,
    pub fault_pause: Millis,
}

/// Those of the step's queue that could have the step by what they have.
pub fn skipped(run: &Run, sessions: &[&SessionRow], at: LookedAt) -> Vec<SkippedWorker> {
    let spec = run.spec(run.position);
    let connected = sessions.iter().filter(|row| !row.is_over(at.now) && row.queues.contains(&spec.queue));
    connected.filter_map(|row| skip(run, row, at)).take(SKIPPED_WORKERS_MAX).collect()
}

/// What a worker can do, as it registered.
pub fn skills_of(row: &SessionRow) -> Arc<Skills> {
    let skills = Skills::new(row.tasks.clone(), row.capabilities.clone());
    Skills::within(skills, row.terms.clone(), row.identity.is_some())
}

/// Whether the session's state lets it have the step which the run stands at.
pub fn is_open_to(run: &Run, row: &SessionRow, at: LookedAt) -> bool {
    match row.state_at(at.now) {
        WorkerState::Online => true,
        WorkerState::Errored => pausing(run, row, at).is_none(),
        WorkerState::Draining | WorkerState::Maintenance | WorkerState::Offline => false,
    }
}

/// The fault that keeps the step from the worker now: only commands and whole runs are.
fn pausing<'a>(run: &Run, row: &'a SessionRow, at: LookedAt) -> Option<&'a WorkerFault> {
    let fault = row.fault.as_ref().filter(|_| run.spec(run.position).is_command());
    fault.filter(|fault| fault.pauses_until(at.fault_pause) > at.now)
}

fn skip(run: &Run, row: &SessionRow, at: LookedAt) -> Option<SkippedWorker> {
    let skills = skills_of(row);
    let told = |reason: SkipReason| SkippedWorker::new(row.id, row.worker.clone(), reason);
    if let Some((reason, why)) = skills.kept_by_bound(run) {
        return Some(SkippedWorker { why: Some(why), ..told(reason) });
    }
    if !skills.can_take(run) {
        return None;
    }
    let is_silent = Heartbeat::At(row.heartbeat_at).silent_since(at.now);
    match row.state_at(at.now) {
        WorkerState::Draining => Some(told(SkipReason::Draining)),
        WorkerState::Maintenance => row.maintenance_at(at.now).map(|maintenance| SkippedWorker {
            why: Some(match &maintenance.by {
                Some(person) => format!("{} ({person})", maintenance.reason),
                None => maintenance.reason.clone(),
            }),
            since: Some(maintenance.since),
            until: maintenance.until,
            ..told(SkipReason::Maintenance)
        }),
        _ if is_silent.is_some() => Some(SkippedWorker { since: is_silent, ..told(SkipReason::Silent) }),
        WorkerState::Errored => pausing(run, row, at).map(|fault| {
            // What a worker of all tenants was seen to fail at may be another tenant's.
            let is_own = row.tenant.is_some();
            SkippedWorker {
                why: is_own.then(|| fault.why.clone()),
                check: Some(fault.check),
                run: fault.run.filter(|_| is_own),
                since: Some(fault.at),
                until: Some(fault.pauses_until(at.fault_pause)),
                ..told(SkipReason::Errored)
            }
        }),
        WorkerState::Online | WorkerState::Offline => None,
    }
}
