//! One action on many runs: look first, then act on exactly what was seen.

mod failures;
mod get;
mod list;
mod preview;
mod start;

use axum::http::StatusCode;
use interlock_core::ids::JobId;
use interlock_core::run::change::key_in_words;
use interlock_protocol::bulk::BulkView;
use interlock_protocol::runs::RunQuery;
use interlock_store::BulkJob;

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::listing::{Listing, routes};
use crate::state::AppState;

pub fn routes<L: Listing>() -> L {
    L::default()
        .routes(routes!(preview::preview))
        .routes(routes!(start::start, list::list))
        .routes(routes!(get::get))
        .routes(routes!(failures::failures))
}

fn view(job: BulkJob) -> BulkView {
    BulkView {
        job_id: job.id,
        action: job.action,
        filter: job.filter.decode().unwrap_or_default(),
        reason: job.reason,
        rollback: job.rollback,
        person: job.person.or_else(|| job.key.map(|key| key_in_words(&key, None))),
        total: job.total,
        done: job.next,
        succeeded: job.succeeded,
        failed: job.failed,
        finished: job.finished_at.is_some(),
        created_at: job.created_at,
        finished_at: job.finished_at,
    }
}

/// A caller that is confined to a workspace sees the jobs that are.
fn is_seen_by(job: &BulkJob, caller: &Caller) -> bool {
    let Some(own) = caller.workspace.as_deref() else { return true };
    job.filter.decode::<RunQuery>().is_ok_and(|filter| filter.workspace.as_deref() == Some(own))
}

/// The job, if there is one for this caller.
async fn find(state: &AppState, caller: &Caller, job: JobId) -> Result<BulkJob, ApiError> {
    let found = state.for_tenant(caller.tenant).bulk_job(job).await?;
    found.filter(|job| is_seen_by(job, caller)).ok_or_else(|| unknown_job(job))
}

fn unknown_job(job: JobId) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "BULK_NOT_FOUND", format!("bulk job {job} does not exist"))
}
