use interlock_core::ids::RunId;
use interlock_core::run::change::IdempotencyRow;
use interlock_core::state::Admission;

use super::sql;
use crate::db::Db;
use crate::error::DbError;
use crate::idempotency::StartAnswer;
use crate::signals::{SignalRow, store_signal};
use crate::sql::side;
use crate::value::args;
use crate::write::{Stored, Write, boxed};

/// What became of a signal to the holder of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectSignaled {
    Signaled,
    /// The request's key is on record, or the signal was sent before.
    Duplicate,
    /// The subject is free by now.
    Free,
}

/// A start whose subject is busy becomes a signal to the run that holds it; the signal's key is the subject.
#[derive(Debug, Clone)]
pub struct SignalSubject {
    pub signal: SignalRow,
    /// The run that is in the way.
    pub run: RunId,
    /// The key of the request, recorded with the signal so that a repeat is one request too.
    pub request: Option<IdempotencyRow>,
}

impl Write for SignalSubject {
    type Answer = SubjectSignaled;
    boxed!();

    async fn apply<D: Db>(&self, db: &D) -> Result<SubjectSignaled, DbError> {
        let Self { signal, run, request } = self;
        // The holder's end waits for this lock: a signal is never stored for a run that has just gone.
        let held = db.query(&sql::SUBJECT_LOCK, args![signal.tenant, &signal.key]).await?;
        if held.is_empty() && db.query(&sql::SUBJECT_QUEUED, args![signal.tenant, &signal.key, 1i64]).await?.is_empty()
        {
            return Ok(SubjectSignaled::Free);
        }
        if let Some(row) = request {
            let answer = StartAnswer { admission: Admission::Signaled };
            let values = args![
                signal.tenant,
                &row.client,
                &row.key,
                &row.source,
                row.request_hash,
                *run,
                signal.received_at,
                row.expires_at,
                serde_json::to_string(&answer).map_err(|error| DbError::Other(error.to_string()))?
            ];
            if db.execute(&side::IDEMPOTENCY_INSERT, values).await? == 0 {
                return Ok(SubjectSignaled::Duplicate);
            }
        }
        Ok(match store_signal(db, signal).await? {
            Stored::Stored => SubjectSignaled::Signaled,
            Stored::Duplicate => SubjectSignaled::Duplicate,
        })
    }
}
