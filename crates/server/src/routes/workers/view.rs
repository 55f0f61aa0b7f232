//! A worker session as it goes over the wire.

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use interlock_core::ids::{SessionId, TenantId};
use interlock_core::plan::TRANSFORM_QUEUE;
use interlock_core::run::why::Heartbeat;
use interlock_core::state::WorkerState;
use interlock_protocol::operations::{WorkerFaultView, WorkerView, limits};
use interlock_store::SessionRow;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::named_in_path;
use crate::state::AppState;

/// The worker session that the path names, if it exists for the caller's tenant.
pub struct OfWorker(pub SessionRow);

impl FromRequestParts<AppState> for OfWorker {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        let named = named_in_path(parts, state, "session").await?;
        let session: SessionId = named.parse().map_err(|_| unknown(&named))?;
        let sessions = state.for_tenant(caller.tenant).worker_sessions().await?;
        sessions.into_iter().find(|row| row.id == session).map(Self).ok_or_else(|| unknown(&named))
    }
}

/// Refused because there is no such worker for the caller's tenant.
pub fn unknown(named: &str) -> ApiError {
    let detail = format!("worker `{}` does not exist", named.chars().take(80).collect::<String>());
    ApiError::new(StatusCode::NOT_FOUND, "WORKER_NOT_FOUND", detail)
}

/// Refused because the worker lives.
pub fn alive(row: &SessionRow, what: &str) -> ApiError {
    let detail = format!("worker `{}` is alive, or still holds steps: {what}", row.worker);
    ApiError::new(StatusCode::CONFLICT, "WORKER_ALIVE", detail)
}

/// The tenant's workers, those last heard of first; with those that are over, or only such of them as still have steps.
pub async fn workers(state: &AppState, tenant: TenantId, with_ended: bool) -> Result<Vec<WorkerView>, ApiError> {
    let store = state.for_tenant(tenant);
    let running = store.claims_by_session().await?;
    let of_session = |session: SessionId| running.get(&session).copied().unwrap_or(0);
    // Servers evaluate transforms by themselves: those sessions are no workers that an operator looks after.
    let own = |row: &SessionRow| row.queues.iter().all(|queue| queue == TRANSFORM_QUEUE);
    let sessions = store.worker_sessions().await?.into_iter().filter(|row| !own(row));
    let mut workers: Vec<_> = sessions.map(|row| worker(state, of_session(row.id), row)).collect();
    workers.retain(|worker| with_ended || worker.state != WorkerState::Offline || worker.running > 0);
    workers.sort_by_key(|worker| (std::cmp::Reverse(worker.last_heartbeat_at), worker.session_id));
    workers.truncate(limits::WORKERS_MAX);
    Ok(workers)
}

/// A worker that has so many of the tenant's steps.
pub fn worker(state: &AppState, running: u64, row: SessionRow) -> WorkerView {
    let (now, renewal) = (state.now(), state.worker_settings().renewal);
    let (is_over, state) = (row.is_over(now), row.state_at(now));
    let maintenance = row.maintenance_at(now).cloned();
    // What a worker of all tenants was seen to fail at may be another tenant's.
    let is_own = row.tenant.is_some();
    let fault = row.fault.filter(|_| !is_over).map(|fault| WorkerFaultView {
        check: fault.check,
        run_id: fault.run.filter(|_| is_own),
        why: if is_own { fault.why } else { "it is shown in the server's log".to_owned() },
        since: fault.at,
    });
    WorkerView {
        session_id: row.id,
        state,
        silent: !is_over && Heartbeat::At(row.heartbeat_at).silent_since(renewal, now).is_some(),
        worker: row.worker,
        last_heartbeat_at: row.heartbeat_at,
        lease_expires_at: row.lease_expires_at,
        registered_at: row.registered_at,
        queues: row.queues,
        tasks: row.tasks,
        capabilities: row.capabilities,
        build_id: row.build_id,
        slots: row.slots,
        running,
        shared: row.tenant.is_none(),
        terms: row.terms,
        fault,
        maintenance,
        labels: row.labels,
    }
}
