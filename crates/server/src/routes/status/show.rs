//! `GET /status`: runs, queues, workers, approvals, endpoints and the feed at one glance, and what is wrong with them.

use axum::Json;
use axum::extract::State;
use interlock_core::run::why::{Surroundings, why};
use interlock_core::state::{ApprovalState, RunState};
use interlock_core::time::Timestamp;
use interlock_core::trigger::EndpointState;
use interlock_protocol::operations::{
    AuditLogState, BrokenEndpoint, FeedState, NeedyRun, OpenApproval, StateCount, StatusView, limits, path,
};
use interlock_protocol::runs::States;
use interlock_store::{ApprovalFilter, Page, RunFilter, RunSummary, TenantStore};

use super::problems::problems;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::routes::approvals::view as approval_view;
use crate::routes::health::ready::why_no_commits;
use crate::routes::queues::list::queues;
use crate::routes::workers::view;
use crate::state::AppState;

/// Endpoints that are looked at.
const ENDPOINTS_MAX: usize = 500;
/// How many runs that need a person are read to find the oldest.
const NEEDY_MAX: usize = 500;

/// See how everything stands
///
/// Runs by state, the oldest that wait for a person and why, queues, workers, open approvals, broken endpoints, and how far
/// listeners are behind. `problems` says what does not get better by itself. A key that is limited to a workspace sees the
/// runs, queues and approvals of that.
#[utoipa::path(
    get,
    path = path::STATUS,
    tag = "operations",
    responses((status = 200, description = "How everything stands.", body = StatusView)),
)]
pub async fn show(State(state): State<AppState>, caller: Caller) -> Result<Json<StatusView>, ApiError> {
    let store = state.for_tenant(caller.tenant);
    let now = state.now();
    let whole_tenant = caller.workspace.is_none();
    let all_workers = view::workers(&state, caller.tenant, false).await?;
    let counts = store.live_counts(caller.workspace.as_deref()).await?;
    let needy = needy(&store, &caller).await?;
    let feed = if whole_tenant {
        let since = state.health().store_health().unsealed_since().await?;
        let lag_ms = since.map_or(0, |since| now.since(since).0);
        Some(FeedState { cursor: store.last_cursor().await?, lag_ms })
    } else {
        None
    };
    let audit = if whole_tenant { audit_log(&state, &caller, now).await? } else { None };
    let mut view = StatusView {
        at: now,
        problems: Vec::new(),
        runs: counts
            .iter()
            .map(|count| StateCount {
                state: count.state,
                detail: count.detail,
                reason: count.reason,
                runs: count.runs,
            })
            .collect(),
        need_a_person: counts
            .iter()
            .filter(|count| States::NEED_A_PERSON.contains(&count.state))
            .map(|count| count.runs)
            .sum(),
        oldest: explained(&state, &store, needy).await?,
        queues: queues(&state, &caller, &all_workers).await?,
        approvals: approvals(&state, &store, &caller).await?,
        endpoints: if whole_tenant { endpoints(&store, feed).await? } else { Vec::new() },
        workers: if whole_tenant { all_workers } else { Vec::new() },
        feed,
        audit,
    };
    view.problems = problems(&view, why_no_commits(&state.health()));
    Ok(Json(view))
}

/// How far the audit log is behind what has happened.
async fn audit_log(state: &AppState, caller: &Caller, now: Timestamp) -> Result<Option<AuditLogState>, ApiError> {
    let Some(progress) = state.audit().progress(caller.tenant).await? else { return Ok(None) };
    let lag_ms = progress.missing_since.map_or(0, |at| now.since(at).0);
    Ok(Some(AuditLogState { entries: progress.entries, lag_ms }))
}

/// The oldest runs that wait for a person.
async fn needy(store: &TenantStore, caller: &Caller) -> Result<Vec<RunSummary>, ApiError> {
    let filter = RunFilter {
        states: States::NEED_A_PERSON.to_vec(),
        workspace: caller.workspace.as_deref().map(str::to_owned),
        ..RunFilter::default()
    };
    let mut rows = store.list_runs(&filter, Page { limit: NEEDY_MAX, after: None }).await?;
    rows.reverse();
    rows.truncate(limits::OLDEST_MAX);
    Ok(rows)
}

async fn explained(state: &AppState, store: &TenantStore, rows: Vec<RunSummary>) -> Result<Vec<NeedyRun>, ApiError> {
    let settings = store.tenant().await?.map(|tenant| tenant.settings).unwrap_or_default();
    let (self_approval, settings) = (settings.self_approval, state.worker_settings());
    let around = Surroundings { self_approval, settings, ..Surroundings::default() };
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(run) = store.load_run(row.run).await? else { continue };
        let explanation = why(&run, state.now(), around);
        // It may have gone on since it was listed.
        if !States::NEED_A_PERSON.contains(&run.state) {
            continue;
        }
        runs.push(NeedyRun {
            run_id: row.run,
            workflow: row.workflow,
            subject: row.subject,
            state: run.state,
            reason: run.reason.filter(|_| run.state == RunState::Paused),
            created_at: row.created_at,
            because: explanation.because,
        });
    }
    Ok(runs)
}

/// The oldest open approvals that the caller can see.
async fn approvals(state: &AppState, store: &TenantStore, caller: &Caller) -> Result<Vec<OpenApproval>, ApiError> {
    let mut open = Vec::new();
    for row in store.approvals(&ApprovalFilter::in_state(ApprovalState::Requested), None, NEEDY_MAX).await? {
        if caller.workspace.is_some() && caller.reach(state, row.run).await.is_err() {
            continue;
        }
        // Of the votes that were cast, those that still count.
        let votes = if row.votes.is_empty() {
            Vec::new()
        } else {
            Box::pin(approval_view::looked_up(state, caller.tenant, row.clone())).await?.votes
        };
        open.push(OpenApproval {
            approval: row.id,
            run_id: row.run,
            approved: votes.iter().filter(|vote| vote.approve).count() as u32,
            needed: row.quorum,
            message: row.message,
            requested_at: row.requested_at,
            expires_at: row.expires_at,
        });
        if open.len() == limits::APPROVALS_MAX {
            break;
        }
    }
    Ok(open)
}

async fn endpoints(store: &TenantStore, feed: Option<FeedState>) -> Result<Vec<BrokenEndpoint>, ApiError> {
    let rows = store.outbound_endpoints(ENDPOINTS_MAX).await?;
    let broken = rows.into_iter().filter(|row| row.failing_since.is_some() || row.state != EndpointState::Enabled);
    let newest = feed.map_or(0, |feed| feed.cursor);
    Ok(broken
        .map(|row| BrokenEndpoint {
            endpoint_id: row.id,
            url: row.url,
            state: row.state,
            failing_since: row.failing_since,
            note: row.note,
            behind: newest.saturating_sub(row.fed_to),
        })
        .collect())
}
