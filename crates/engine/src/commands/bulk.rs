//! One action on many runs, as a job: which runs is fixed when the job is made, so what was previewed is what is done.
//! A loop ([`crate::loops::bulk`]) carries it out and survives crashes.

use interlock_boxed::boxed;
use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::limits::BULK_RUNS_MAX;
use interlock_core::rejection::Rejection;
use interlock_core::run::change::Context;
use interlock_store::{BulkJob, FinishIdempotency, Page, PutBulkJob, RunFilter, RunSummary};
use serde_json::json;

use crate::audit::Actor;
use crate::error::EngineError;
use crate::parts::Runs;

/// How many runs a preview shows.
const SAMPLE_MAX: usize = 10;
/// How many rows are read at once while runs are counted.
const PAGE: usize = 500;

#[derive(Debug, Clone)]
pub struct BulkRequest {
    pub tenant: TenantId,
    pub action: BulkAction,
    pub filter: RunFilter,
    /// The filter as the request wrote it, for the record.
    pub filter_text: Json,
    pub reason: String,
    /// Cancel only: undo first what each run has done.
    pub rollback: bool,
    pub by: Context,
    /// What the preview counted. The job is refused if it is another number now.
    pub expected_count: u64,
}

/// The runs that a filter matches now.
#[derive(Debug, Clone)]
pub struct MatchingRuns {
    pub runs: Vec<RunId>,
    /// The newest of them.
    pub sample: Vec<RunSummary>,
}

impl Runs {
    /// Which runs a job with this filter would act on. A run that another one continues is not retried, and one that has
    /// ended is not canceled.
    #[boxed]
    pub async fn matching(
        &self,
        tenant: TenantId,
        filter: &RunFilter,
        action: Option<BulkAction>,
    ) -> Result<MatchingRuns, EngineError> {
        if filter.is_empty() {
            let what = "the filter is empty and would match every run; say which ones you mean";
            return Err(Rejection::InvalidInput { what: what.into() }.into());
        }
        let mut found = MatchingRuns { runs: Vec::new(), sample: Vec::new() };
        let mut after = None;
        loop {
            let mut rows = self.0.0.store.list_runs(tenant, filter, Page { limit: PAGE, after }).await?;
            let full = rows.len() == PAGE;
            after = rows.last().map(|row| row.run);
            rows.retain(|row| match action {
                Some(BulkAction::Retry) => row.continued_by.is_none(),
                Some(BulkAction::Cancel) => !row.state.is_terminal(),
                Some(BulkAction::Resume) | None => true,
            });
            found.runs.extend(rows.iter().map(|row| row.run));
            if found.runs.len() > BULK_RUNS_MAX {
                let what =
                    format!("the filter matches more than {BULK_RUNS_MAX} runs; narrow it, by time for instance");
                return Err(Rejection::InvalidInput { what }.into());
            }
            let wanted = SAMPLE_MAX - found.sample.len();
            found.sample.extend(rows.into_iter().take(wanted));
            if !full {
                return Ok(found);
            }
        }
    }

    /// A job as it would be made now: checked, and not stored.
    #[boxed]
    pub async fn draft_bulk(&self, request: BulkRequest) -> Result<BulkJob, EngineError> {
        let MatchingRuns { runs, .. } = self.matching(request.tenant, &request.filter, Some(request.action)).await?;
        let found = runs.len() as u64;
        if found != request.expected_count {
            return Err(EngineError::BulkCount { expected: request.expected_count, found });
        }
        let now = self.0.now();
        // What a key without an owner asks for is told under the key's name.
        let key = request.by.key_name().filter(|_| request.by.person.is_none());
        Ok(BulkJob {
            id: JobId(self.0.fresh_id()),
            action: request.action,
            filter: request.filter_text,
            reason: request.reason,
            rollback: request.rollback,
            person: request.by.person,
            key,
            maker: request.by.makers.into_iter().next(),
            total: runs.len() as u32,
            runs,
            next: 0,
            succeeded: 0,
            failed: 0,
            created_at: now,
            // Nothing to do is done.
            finished_at: (found == 0).then_some(now),
        })
    }

    /// Makes a job, with the answer to the request that asks for it. It is durable when this answers; the loop begins at
    /// once.
    #[boxed]
    pub async fn start_bulk(
        &self,
        tenant: TenantId,
        job: BulkJob,
        by: &Actor,
        answer: Option<FinishIdempotency>,
    ) -> Result<(), EngineError> {
        let details = json!({
            "action": job.action, "filter": job.filter, "reason": job.reason, "rollback": job.rollback,
            "runs": job.total,
        });
        let what = by.did("bulk.started", job.id, &details);
        self.0.write_answering(tenant, PutBulkJob { tenant, job }, what, answer).await?;
        self.0.0.bulk.notify_one();
        Ok(())
    }
}
