//! `GET /runs/{run}/why`: why the run stands where it stands, and what can be done about it.

use axum::Json;
use axum::extract::State;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_core::run::receipt::Receipt;
use interlock_core::run::why::{self, DecidedApproval, Explanation, Surroundings};
use interlock_core::run::{Phase, Run};
use interlock_core::state::{ApprovalState, ReceiptState, RunState};
use interlock_protocol::runs::path;
use interlock_store::{ApprovalRow, RunSummary, SessionRow};

use super::skipped::{self, LookedAt};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::NamedRun;
use crate::state::AppState;

/// Why a run stands where it stands
///
/// What it waits for, since and until when, the last error, and what can be done about it.
#[utoipa::path(
    get,
    path = path::WHY,
    tag = "runs",
    params(("run" = RunId, Path)),
    responses((status = 200, description = "The causes, the weightiest first, and the remedies.", body = Explanation)),
)]
pub async fn why(
    State(state): State<AppState>,
    caller: Caller,
    named: NamedRun,
) -> Result<Json<Explanation>, ApiError> {
    let found = state.for_tenant(named.tenant).load_run(named.run).await?;
    let run = found.ok_or_else(|| ApiError::unknown_run(named.run))?;
    let sessions = state.for_tenant(named.tenant).worker_sessions().await?;
    let only_embedded = !state.tenants().orchestrates_workers(named.tenant).await?;
    // A worker elsewhere goes on with the run that it has.
    let counts = |row: &&SessionRow| !only_embedded || row.tenant.is_none() || run.assigned_session() == Some(row.id);
    let counted: Vec<&SessionRow> = sessions.iter().filter(counts).collect();
    let bundle = bundle(&state, &run).await?;
    let distances = skipped::distances(&state.workers(), &sessions);
    let asked_last = skipped::asked_last(&state, &sessions);
    let full = skipped::full(&state, &run, &counted, &asked_last).await?;
    let settings = state.worker_settings();
    let is_command = run.spec(run.position).is_command();
    let sole_tenant = if is_command { state.workers().sole_tenant().await? } else { None };
    let at = LookedAt {
        now: state.now(),
        fault_pause: state.workers().fault_pause(),
        renewal: settings.renewal,
        distances: &distances,
        asked_last: &asked_last,
        full: &full,
        sole_tenant,
    };
    let workers = Some(workers(&run, &counted, at, bundle));
    let skipped = skipped::skipped(&run, &counted, at);
    let throttle = state.runs().throttle(&run).await?;
    let holder = holder(&state, &caller, &run).await?;
    let heartbeat = state.for_tenant(named.tenant).heartbeat(named.run).await?;
    let holding = match &run.current().phase {
        Phase::Running { session, .. } => sessions.iter().find(|row| row.id == *session),
        _ => None,
    };
    let worker = holding.map(|row| (row.worker.as_str(), row.lease_expires_at));
    let self_approval = allows_self_approval(&state, named.tenant).await?;
    let author = match &run.current().phase {
        Phase::WaitingApproval(_) => state.runs().version_author(named.tenant, &run).await?,
        _ => None,
    };
    let fallen = match &run.current().phase {
        Phase::WaitingApproval(open) => state.runs().approval_exclusions(&run, open).await?.fallen,
        _ => Vec::new(),
    };
    let left_in_doubt = left_in_doubt(&state, &run).await?;
    let decided = decided(&state, &run).await?;
    let around = Surroundings {
        workers,
        only_embedded,
        throttle,
        holder,
        heartbeat,
        worker,
        self_approval,
        author: author.as_deref(),
        fallen: &fallen,
        bundle,
        decided: &decided,
        left_in_doubt: &left_in_doubt,
        skipped: &skipped,
        settings,
    };
    Ok(Json(why::why(&run, state.now(), around)))
}

/// Whether the tenant lets people approve what they started.
async fn allows_self_approval(state: &AppState, tenant: TenantId) -> Result<bool, ApiError> {
    let tenant = state.for_tenant(tenant).tenant().await?;
    Ok(tenant.is_some_and(|tenant| tenant.settings.self_approval))
}

/// What people have decided about a run that has ended.
async fn decided(state: &AppState, run: &Run) -> Result<Vec<DecidedApproval>, ApiError> {
    if !run.state.is_terminal() {
        return Ok(Vec::new());
    }
    let rows = state.for_tenant(run.tenant).approvals_of(run.id).await?;
    let is_decided = |row: &ApprovalRow| {
        matches!(row.state, ApprovalState::Approved | ApprovalState::Rejected | ApprovalState::Expired)
    };
    let told = rows.into_iter().filter(is_decided).map(|row| {
        let (approved_by, rejected_by) = DecidedApproval::people(&row.votes);
        let is_known = (row.position as usize) < run.steps.len();
        let step = if is_known { run.spec(row.position).key.clone() } else { row.position.to_string() };
        DecidedApproval { approval: row.id, step, state: row.state, asked: row.message, approved_by, rejected_by }
    });
    Ok(told.collect())
}

/// The effects of a run that has ended of which nobody has said yet what became of them.
async fn left_in_doubt(state: &AppState, run: &Run) -> Result<Vec<Receipt>, ApiError> {
    if !run.state.is_terminal() {
        return Ok(Vec::new());
    }
    let rows = state.for_tenant(run.tenant).receipts(run.id).await?;
    // A doubt about an effect that may be repeated is none for the run, but for whoever wants to know what was done.
    let is_told = |receipt: &Receipt| receipt.is_doubtful() || receipt.state == ReceiptState::InDoubt;
    Ok(rows.into_iter().map(|row| row.receipt).filter(is_told).collect())
}

/// The run that a queued one waits for, and where it stands.
/// The run that holds the subject, where the caller may see it.
async fn holder(state: &AppState, caller: &Caller, run: &Run) -> Result<Option<(RunId, RunState)>, ApiError> {
    let Some(subject) = run.header.subject.as_ref().filter(|_| run.is_queued()) else { return Ok(None) };
    let store = state.for_tenant(run.tenant);
    let Some(holder) = store.subject_holder(subject).await? else { return Ok(None) };
    let is_seen = |row: &RunSummary| caller.workspace.as_deref().is_none_or(|own| own == row.workspace);
    Ok(store.run_overview(holder).await?.filter(is_seen).map(|row| (holder, row.state)))
}

/// The policy bundle in force, where the policy has kept workers from the run's current step.
async fn bundle(state: &AppState, run: &Run) -> Result<Option<Hash>, ApiError> {
    if run.refused_workers().is_empty() {
        return Ok(None);
    }
    Ok(Some(state.policies().in_force(run.tenant).await?.active))
}

/// How many worker sessions would take the run's current step. One whose heartbeats have stopped would not, and one that the
/// policy keeps from it may not.
fn workers(run: &Run, sessions: &[&SessionRow], at: LookedAt<'_>, bundle: Option<Hash>) -> u32 {
    let spec = run.spec(run.position);
    let takes = |session: &&&SessionRow| {
        run.assigned_session().is_none_or(|assigned| assigned == session.id)
            && skipped::is_open_to(run, session, at)
            && at.silent_since(session).is_none()
            && session.queues.contains(&spec.queue)
            && !(run.seeks_worker() && run.was_refused_by(session.id))
            && !bundle.is_some_and(|bundle| run.refuses_worker(session.id, bundle))
            && skipped::can_take(run, session, at)
    };
    sessions.iter().filter(takes).count() as u32
}
