use interlock_core::ids::{JobId, ServerId, TenantId};
use interlock_core::time::Timestamp;

use super::{BulkFailure, BulkJob, sql};
use crate::db::Db;
use crate::error::DbError;
use crate::op::OpAnswer;
use crate::value::args;

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
