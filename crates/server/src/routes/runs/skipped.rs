//! Workers that are connected and are passed over for a run's current step, each with its reason.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use interlock_core::ids::{SessionId, TenantId};
use interlock_core::limits::SKIPPED_WORKERS_MAX;
use interlock_core::run::Run;
use interlock_core::run::skipped_worker::{SkipReason, SkippedWorker};
use interlock_core::run::why::Heartbeat;
use interlock_core::state::WorkerState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::Skills;
use interlock_core::work::fault::WorkerFault;
use interlock_engine::parts::Workers;
use interlock_engine::sole_tenant::SEVERAL_TENANTS;
use interlock_store::SessionRow;

use crate::api_error::ApiError;
use crate::state::AppState;

/// When it is looked at, how long a fault keeps commands from a worker, how often workers renew their sessions, how far away they are,
/// which of them were offline a moment ago, which have no room, and whose commands those of all tenants run.
#[derive(Clone, Copy)]
pub struct LookedAt<'a> {
    pub now: Timestamp,
    pub fault_pause: Millis,
    pub renewal: Millis,
    pub distances: &'a HashMap<SessionId, Millis>,
    pub asked_last: &'a HashMap<SessionId, Timestamp>,
    pub full: &'a HashSet<SessionId>,
    /// The tenant whose commands a worker of all tenants runs; none where there are several.
    pub sole_tenant: Option<TenantId>,
}

impl LookedAt<'_> {
    /// Since when the worker's heartbeats have stopped.
    pub fn silent_since(self, row: &SessionRow) -> Option<Timestamp> {
        Heartbeat::At(row.heartbeat_at).silent_since(self.renewal, self.now)
    }

    /// Whether a command is kept from the worker because it serves all tenants, of which there are several.
    fn is_of_several(self, run: &Run, row: &SessionRow) -> bool {
        row.tenant.is_none() && run.spec(run.position).is_command() && self.sole_tenant != Some(run.tenant)
    }

    /// How long the worker's calls take to be answered, where this server knows. One that has the run as a whole is near enough.
    fn distance(self, run: &Run, row: &SessionRow) -> Option<Millis> {
        if run.assigned_session() == Some(row.id) { Some(Millis(0)) } else { self.distances.get(&row.id).copied() }
    }
}

/// How long the calls of workers take to be answered, of those that have told this server.
pub fn distances(workers: &Workers, sessions: &[SessionRow]) -> HashMap<SessionId, Millis> {
    // The worker inside a server, whichever, needs no way to it.
    let of = |row: &SessionRow| if row.tenant.is_none() { Some(Millis(0)) } else { workers.round_trip(row.id) };
    sessions.iter().filter_map(|row| Some((row.id, of(row)?))).collect()
}

/// Workers that were offline a moment ago, and until when others are asked before them.
pub fn asked_last(state: &AppState, sessions: &[SessionRow]) -> HashMap<SessionId, Timestamp> {
    let (now, lease, pause) = (state.now(), state.session_lease(), state.workers().fault_pause());
    let fresh = sessions.iter().filter(|row| !row.is_over(now) && row.registered_at + pause > now);
    fresh.filter_map(|row| Some((row.id, row.came_back_at(sessions, lease)? + pause))).collect()
}

/// Workers without room, of those that would be asked to take the run before one that was offline a moment ago.
pub async fn full(
    state: &AppState,
    run: &Run,
    sessions: &[&SessionRow],
    asked_last: &HashMap<SessionId, Timestamp>,
) -> Result<HashSet<SessionId>, ApiError> {
    if asked_last.is_empty() || !run.seeks_worker() {
        return Ok(HashSet::new());
    }
    let now = state.now();
    let is_first = |row: &&&SessionRow| !row.is_over(now) && !asked_last.contains_key(&row.id);
    let first: Vec<&SessionRow> = sessions.iter().filter(is_first).copied().collect();
    Ok(state.workers().full_sessions(run.tenant, &first).await?)
}

/// Whether the session's worker could take the step which the run stands at.
pub fn can_take(run: &Run, row: &SessionRow, at: LookedAt<'_>) -> bool {
    skills_of(row).can_take(run, at.distance(run, row)) && !at.is_of_several(run, row)
}

/// Those of the step's queue that could have the step by what they have.
pub fn skipped(run: &Run, sessions: &[&SessionRow], at: LookedAt<'_>) -> Vec<SkippedWorker> {
    let spec = run.spec(run.position);
    let is_connected = |row: &&&SessionRow| !row.is_over(at.now) && row.queues.contains(&spec.queue);
    let connected: Vec<&SessionRow> = sessions.iter().filter(is_connected).copied().collect();
    let takes = |row: &SessionRow| {
        is_open_to(run, row, at)
            && at.silent_since(row).is_none()
            && !run.was_refused_by(row.id)
            && can_take(run, row, at)
    };
    let is_first = |row: &SessionRow| !at.asked_last.contains_key(&row.id) && !at.full.contains(&row.id);
    let others_first = run.seeks_worker() && connected.iter().any(|&row| is_first(row) && takes(row));
    let last = |row: &SessionRow| {
        let until = at.asked_last.get(&row.id).filter(|_| others_first && takes(row))?;
        let why = "it has just come back, and workers that were there all the while are asked first".to_owned();
        let told = SkippedWorker::new(row.id, row.worker.clone(), SkipReason::RecentlyOffline);
        Some(SkippedWorker { why: Some(why), until: Some(*until), ..told })
    };
    let told = connected.into_iter().filter_map(|row| skip(run, row, at).or_else(|| last(row)));
    told.take(SKIPPED_WORKERS_MAX).collect()
}

/// What a worker can do, as it registered.
fn skills_of(row: &SessionRow) -> Arc<Skills> {
    let skills = Skills::new(row.tasks.clone(), row.capabilities.clone());
    Skills::labeled(Skills::within(skills, row.terms.clone(), row.identity.is_some()), row.labels.clone())
}

/// Whether the session's state lets it have the step which the run stands at.
pub fn is_open_to(run: &Run, row: &SessionRow, at: LookedAt<'_>) -> bool {
    match row.state_at(at.now) {
        WorkerState::Online => true,
        WorkerState::Errored => pausing(run, row, at).is_none(),
        // It keeps the runs that it has as a whole.
        WorkerState::Maintenance => run.assigned_session() == Some(row.id) && pausing(run, row, at).is_none(),
        WorkerState::Draining | WorkerState::Offline => false,
    }
}

/// The fault that keeps the step from the worker now: only commands and whole runs are.
fn pausing<'a>(run: &Run, row: &'a SessionRow, at: LookedAt<'_>) -> Option<&'a WorkerFault> {
    let fault = row.fault.as_ref().filter(|_| run.spec(run.position).is_command());
    fault.filter(|fault| fault.pauses_until(at.fault_pause) > at.now)
}

fn skip(run: &Run, row: &SessionRow, at: LookedAt<'_>) -> Option<SkippedWorker> {
    let skills = skills_of(row);
    let told = |reason: SkipReason| SkippedWorker::new(row.id, row.worker.clone(), reason);
    if let Some((reason, why)) = skills.kept_by_bound(run, at.distance(run, row)) {
        return Some(SkippedWorker { why: Some(why), ..told(reason) });
    }
    if !skills.can_take(run, at.distance(run, row)) {
        return None;
    }
    if at.is_of_several(run, row) {
        return Some(SkippedWorker { why: Some(SEVERAL_TENANTS.to_owned()), ..told(SkipReason::SeveralTenants) });
    }
    let is_silent = at.silent_since(row);
    match row.state_at(at.now) {
        WorkerState::Maintenance if is_open_to(run, row, at) => None,
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
