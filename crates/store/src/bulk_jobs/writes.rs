use interlock_core::ids::{JobId, ServerId, TenantId};
use interlock_core::time::Timestamp;

use super::{BulkFailure, BulkJob, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::value::args;
use crate::write::{Changed, Write, boxed, changed};

#[derive(Debug, Clone)]
pub struct PutBulkJob {
    pub tenant: TenantId,
    pub job: BulkJob,
}

impl Write for PutBulkJob {
    type Answer = ();
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<(), DbError> {
        let job = &self.job;
        let runs: Vec<u8> = job.runs.iter().flat_map(|run| *run.as_bytes()).collect();
        let values = args![
            self.tenant,
            job.id,
            job.action.as_str(),
            &job.filter,
            &job.reason,
            job.rollback,
            job.person.as_ref(),
            runs,
            job.total,
            job.created_at,
            job.finished_at,
            job.maker.as_ref(),
            job.key.as_ref()
        ];
        db.execute(&sql::BULK_PUT, values).await?;
        Ok(())
    }
}

/// [`Changed::Gone`] if another server has it.
#[derive(Debug, Clone, Copy)]
pub struct ClaimBulkJob {
    pub tenant: TenantId,
    pub job: JobId,
    pub server: ServerId,
    pub now: Timestamp,
    pub until: Timestamp,
}

impl Write for ClaimBulkJob {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let values = args![self.server, self.until, self.tenant, self.job, self.now];
        changed(db, &sql::BULK_CLAIM, values).await
    }
}

/// [`Changed::Gone`] if another server went on with it.
#[derive(Debug, Clone)]
pub struct AdvanceBulkJob {
    pub tenant: TenantId,
    pub job: JobId,
    pub server: ServerId,
    pub from: u32,
    pub to: u32,
    pub failures: Vec<BulkFailure>,
    pub until: Timestamp,
    pub finished_at: Option<Timestamp>,
}

impl Write for AdvanceBulkJob {
    type Answer = Changed;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<Changed, DbError> {
        let Self { tenant, job, server, from, to, failures, until, finished_at } = self;
        let failed = failures.len() as u32;
        let succeeded = to - from - failed;
        let values = args![*to, succeeded, failed, *until, *finished_at, *tenant, *job, *from, *server];
        if db.execute(&sql::BULK_PROGRESS, values).await? == 0 {
            return Ok(Changed::Gone);
        }
        for failure in failures {
            let BulkFailure { position, run, code, message } = failure;
            db.execute(&sql::BULK_FAILURE, args![*tenant, *job, *position, *run, code, message]).await?;
        }
        Ok(Changed::Done)
    }
}
