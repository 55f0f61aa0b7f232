//! Bulk jobs as rows: one action on runs that were chosen once.

use interlock_core::bulk::BulkAction;
use interlock_core::ids::{JobId, RunId, ServerId, TenantId};
use interlock_core::json::Json;
use interlock_core::time::Timestamp;

use crate::db::Db;
use crate::error::{CorruptRow, DbError, ReadError};
use crate::op::OpAnswer;
use crate::sql::bulk as sql;
use crate::store::Store;
use crate::value::{Row, Value, args};

#[derive(Debug, Clone, PartialEq)]
pub struct BulkJob {
    pub id: JobId,
    pub action: BulkAction,
    /// The filter as it was asked for.
    pub filter: Json,
    pub reason: String,
    pub rollback: bool,
    pub person: Option<String>,
    /// Fixed when the job is made. Empty where a list leaves them out.
    pub runs: Vec<RunId>,
    pub total: u32,
    /// How many of the runs have been dealt with.
    pub next: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Why one run of a job was left as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkFailure {
    pub position: u32,
    pub run: RunId,
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone)]
pub enum BulkOp {
    Put {
        tenant: TenantId,
        job: Box<BulkJob>,
    },
    /// Answers [`OpAnswer::Renewed`], or [`OpAnswer::Gone`] if another server has it.
    Claim {
        tenant: TenantId,
        job: JobId,
        server: ServerId,
        now: Timestamp,
        until: Timestamp,
    },
    /// Answers [`OpAnswer::Done`], or [`OpAnswer::Gone`] if another server went on with it.
    Progress(Box<BulkProgress>),
}

#[derive(Debug, Clone)]
pub struct BulkProgress {
    pub tenant: TenantId,
    pub job: JobId,
    pub server: ServerId,
    pub from: u32,
    pub to: u32,
    pub failures: Vec<BulkFailure>,
    pub until: Timestamp,
    pub finished_at: Option<Timestamp>,
}

pub(crate) async fn apply<D: Db>(db: &D, op: &BulkOp) -> Result<OpAnswer, DbError> {
    match op {
        BulkOp::Put { tenant, job } => {
            let runs: Vec<u8> = job.runs.iter().flat_map(|run| *run.as_bytes()).collect();
            let values = args![
                *tenant,
                job.id,
                job.action.as_str(),
                &job.filter,
                &job.reason,
                job.rollback,
                job.person.as_ref(),
                runs,
                job.total,
                job.created_at,
                job.finished_at
            ];
            db.execute(&sql::BULK_PUT, values).await?;
            Ok(OpAnswer::Done)
        }
        BulkOp::Claim { tenant, job, server, now, until } => {
            let rows = db.execute(&sql::BULK_CLAIM, args![*server, *until, *tenant, *job, *now]).await?;
            Ok(if rows == 1 { OpAnswer::Renewed } else { OpAnswer::Gone })
        }
        BulkOp::Progress(progress) => {
            let BulkProgress { tenant, job, server, from, to, failures, until, finished_at } = &**progress;
            let failed = failures.len() as u32;
            let succeeded = to - from - failed;
            let values = args![*to, succeeded, failed, *until, *finished_at, *tenant, *job, *from, *server];
            if db.execute(&sql::BULK_PROGRESS, values).await? == 0 {
                return Ok(OpAnswer::Gone);
            }
            for failure in failures {
                let BulkFailure { position, run, code, message } = failure;
                db.execute(&sql::BULK_FAILURE, args![*tenant, *job, *position, *run, code, message]).await?;
            }
            Ok(OpAnswer::Done)
        }
    }
}

impl Store {
    /// Jobs that nobody is believed to work on, or that this server does.
    pub async fn open_bulk_jobs(
        &self,
        server: ServerId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<(TenantId, JobId)>, ReadError> {
        let read = |mut row: Row| Ok((row.id("tenant_id")?, row.id("job_id")?));
        self.readable(&sql::BULK_OPEN, limit, |limit| args![server, now, limit], read).await
    }

    pub async fn bulk_job(&self, tenant: TenantId, job: JobId) -> Result<Option<BulkJob>, ReadError> {
        let mut rows = self.rows(&sql::BULK_ONE, args![tenant, job]).await?;
        let Some(row) = rows.first_mut() else { return Ok(None) };
        let mut job = job_of(row)?;
        let bytes = row.blob("runs")?;
        let (ids, rest) = bytes.as_chunks::<16>();
        if !rest.is_empty() {
            return Err(row.corrupt("runs", "is not a list of ids").into());
        }
        job.runs = ids.iter().map(|id| RunId::from_bytes(*id)).collect();
        Ok(Some(job))
    }

    /// Jobs, newest first, without their runs.
    pub async fn bulk_jobs(
        &self,
        tenant: TenantId,
        after: Option<JobId>,
        limit: usize,
    ) -> Result<Vec<BulkJob>, ReadError> {
        let below = after.map_or(Value::Id([0xff; 16]), Value::from);
        let rows = self.rows(&sql::BULK_LIST, args![tenant, below, limit]).await?;
        rows.into_iter().map(|mut row| Ok(job_of(&mut row)?)).collect()
    }

    /// What went wrong, in the job's own order, after a position.
    pub async fn bulk_failures(
        &self,
        tenant: TenantId,
        job: JobId,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<BulkFailure>, ReadError> {
        let after = after.map_or(-1, i64::from);
        let rows = self.rows(&sql::BULK_FAILURES, args![tenant, job, after, limit]).await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(BulkFailure {
                    position: row.num("position")?,
                    run: row.id("run_id")?,
                    code: row.text("code")?,
                    message: row.text("message")?,
                })
            })
            .collect()
    }
}

/// Everything but its runs.
fn job_of(row: &mut Row) -> Result<BulkJob, CorruptRow> {
    Ok(BulkJob {
        id: row.id("job_id")?,
        action: row.name("action")?,
        filter: row.json("filter")?,
        reason: row.text("reason")?,
        rollback: row.flag("rollback")?,
        person: row.opt_text("person")?,
        runs: Vec::new(),
        total: row.num("total")?,
        next: row.num("next")?,
        succeeded: row.num("succeeded")?,
        failed: row.num("failed")?,
        created_at: row.time("created_at")?,
        finished_at: row.opt_time("finished_at")?,
    })
}
