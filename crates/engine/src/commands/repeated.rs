//! Starts that were made before, under the same key: each gets the answer of the first time, whatever has changed since. That a
//! workflow is disabled, or a schedule gone, is a reason against the first use of a key only.

use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, canonical_hash};
use interlock_core::rejection::Rejection;
use interlock_core::run::change::IdempotencyRow;
use interlock_core::state::Admission;
use interlock_store::{IdempotencyRecord, StartAnswer};

use crate::commands::start::{IdempotencyKey, Started, check_key};
use crate::error::EngineError;
use crate::parts::Runs;
use crate::run_log::log_idempotency_hit;

/// What makes two requests under a key the same one.
pub(crate) fn hash_of(asked: &serde_json::Value) -> Result<Hash, Rejection> {
    canonical_hash(asked).map_err(|error| Rejection::InvalidInput { what: error.to_string() })
}

impl Runs {
    /// The answer to a request whose key is on record already. Refused where that was another request.
    pub(crate) async fn recorded(
        &self,
        tenant: TenantId,
        key: Option<&IdempotencyKey>,
        asked: Hash,
    ) -> Result<Option<Started>, EngineError> {
        let Some(key) = key else { return Ok(None) };
        check_key(key)?;
        match self.0.0.store.idempotency(tenant, &key.client, &key.key).await? {
            Some(record) => self.answer_again(tenant, (&key.key, asked), record).map(Some),
            None => Ok(None),
        }
    }

    /// What a start comes to that was refused: the answer of the first time, where it is a repeat.
    pub(crate) async fn unless_repeated(
        &self,
        tenant: TenantId,
        key: Option<&IdempotencyKey>,
        asked: Hash,
        refused: EngineError,
    ) -> Result<Started, EngineError> {
        self.recorded(tenant, key, asked).await?.ok_or(refused)
    }

    /// The answer to a request that has met its key in the commit.
    pub(crate) async fn replay(&self, tenant: TenantId, asked: &IdempotencyRow) -> Result<Started, EngineError> {
        let record = self.0.0.store.idempotency(tenant, &asked.client, &asked.key).await?;
        // It was swept away between the two looks: the same request may simply be made again.
        let record = record.ok_or(EngineError::Overloaded)?;
        self.answer_again(tenant, (&asked.key, asked.request_hash), record)
    }

    fn answer_again(
        &self,
        tenant: TenantId,
        (key, asked): (&str, Hash),
        record: IdempotencyRecord,
    ) -> Result<Started, EngineError> {
        // Without a run it belongs to a request of another kind.
        let Some(run) = record.run.filter(|_| record.request_hash == asked) else {
            return Err(EngineError::IdempotencyMismatch);
        };
        if record.expires_at <= self.0.now() {
            return Err(EngineError::IdempotencyExpired { run });
        }
        let answer = record.response.map(|response| response.decode::<StartAnswer>()).transpose();
        let answer = answer.map_err(|error| EngineError::Store(format!("a kept answer cannot be read: {error}")))?;
        let admission = answer.map_or(Admission::Started, |answer| answer.admission);
        log_idempotency_hit(tenant, run, key);
        Ok(Started { run, replayed: true, admission })
    }
}
