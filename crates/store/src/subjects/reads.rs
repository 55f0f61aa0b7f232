use interlock_core::ids::{RunId, TenantId};

use super::{QueuedRun, SubjectLine, sql};
use crate::error::ReadError;
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// The run that holds a subject.
    pub async fn subject_holder(&self, tenant: TenantId, subject: &str) -> Result<Option<RunId>, ReadError> {
        let mut rows = self.rows(&sql::SUBJECT_GET, args![tenant, subject]).await?;
        Ok(rows.first_mut().map(|row| row.id("run_id")).transpose()?)
    }

    /// The holder, and the first of those who wait, in their order.
    pub async fn subject_line(&self, tenant: TenantId, subject: &str, limit: usize) -> Result<SubjectLine, ReadError> {
        let queued = (&sql::SUBJECT_QUEUED, args![tenant, subject, limit]);
        let held = (&sql::SUBJECT_GET, args![tenant, subject]);
        let mut answers = self.rows_many(vec![held, queued]).await?.into_iter();
        let mut holder = None;
        for mut row in answers.next().unwrap_or_default() {
            holder = Some(row.id("run_id")?);
        }
        let mut queue = Vec::new();
        for mut row in answers.next().unwrap_or_default() {
            queue.push(QueuedRun { run: row.id("run_id")?, cancels: row.int("cancels")? != 0 });
        }
        Ok(SubjectLine { holder, queue })
    }

    /// Subjects whose queue must be advanced: no run holds them, or the run that does is to be canceled.
    pub async fn untended_subjects(&self, limit: usize) -> Result<Vec<(TenantId, String)>, ReadError> {
        let read = |mut row: Row| Ok((row.id("tenant_id")?, row.text("subject")?));
        self.readable(&sql::SUBJECTS_UNTENDED, limit, |limit| args![limit], read).await
    }
}
