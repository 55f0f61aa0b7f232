use interlock_core::ids::{JobId, RunId, ServerId, TenantId};
use interlock_core::time::Timestamp;

use super::{BulkFailure, BulkJob, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, Value, args};

impl Store {
    /// Unfinished jobs that this server owns, or that no other server owns now.
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
    let mut job = BulkJob {
        id: row.id("job_id")?,
        action: row.name("action")?,
        filter: row.json("filter")?,
        reason: row.text("reason")?,
        rollback: row.flag("rollback")?,
        person: row.opt_text("person")?,
        key: row.opt_text("key_name")?,
        maker: row.opt_text("maker")?,
        runs: Vec::new(),
        total: row.num("total")?,
        next: row.num("next")?,
        succeeded: row.num("succeeded")?,
        failed: row.num("failed")?,
        created_at: row.time("created_at")?,
        finished_at: row.opt_time("finished_at")?,
    };
    (job.person, job.key) = who(job.person, job.key);
    Ok(job)
}

/// Who has asked for it. Servers of earlier releases wrote a key that no person owns where the person stands, as `key NAME`; no person's
/// name has a blank in it.
fn who(person: Option<String>, key: Option<String>) -> (Option<String>, Option<String>) {
    match person.as_deref().and_then(|person| person.strip_prefix("key ")) {
        Some(earlier) if key.is_none() => (None, Some(earlier.to_owned())),
        _ => (person, key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_place_of_a_person_is_a_key() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(who(some("key deploy-bot"), None), (None, some("deploy-bot")));
        assert_eq!(who(some("zoe@example.com"), None), (some("zoe@example.com"), None));
        assert_eq!(who(None, some("deploy-bot")), (None, some("deploy-bot")));
    }
}
