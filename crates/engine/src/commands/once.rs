//! Requests whose work is not one commit, done once: the key is taken before, the answer is kept after.

use interlock_boxed::boxed;
use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::state::IdempotencyState;
use interlock_store::{BeginIdempotency, FinishIdempotency, RenewIdempotency, Stored};

use crate::commands::start::{IdempotencyKey, check_key};
use crate::error::EngineError;
use crate::parts::Requests;

/// A request under a key.
#[derive(Debug, Clone)]
pub struct OnceRequest {
    pub tenant: TenantId,
    pub key: IdempotencyKey,
    /// What kind of request it is: the same key of another kind is another request.
    pub source: String,
    pub hash: Hash,
}

/// What is to be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Once {
    /// It was not done before: do it, then [`Engine::finish_once`].
    Begin,
    /// It was done; this was the answer.
    Done(Json),
}

impl Requests {
    /// Takes the key, or says what became of the request that had it.
    #[boxed]
    pub async fn begin_once(&self, request: &OnceRequest) -> Result<Once, EngineError> {
        check_key(&request.key)?;
        let now = self.0.now();
        let begin = BeginIdempotency {
            tenant: request.tenant,
            client: request.key.client.clone(),
            key: request.key.key.clone(),
            source: request.source.clone(),
            request_hash: request.hash,
            now,
            lock_until: now + limits::IDEMPOTENCY_REQUEST_LOCK,
            expires_at: now + limits::IDEMPOTENCY_COMPLETED_TTL,
            attempts_max: limits::IDEMPOTENCY_ATTEMPTS_MAX,
        };
        if self.0.0.store.write(begin).await? == Stored::Stored {
            return Ok(Once::Begin);
        }
        let record = self.0.0.store.idempotency(request.tenant, &request.key.client, &request.key.key).await?;
        // Swept away between the two looks: the same request may simply be made again.
        let record = record.ok_or(EngineError::Overloaded)?;
        if record.request_hash != request.hash || record.source != request.source {
            return Err(EngineError::IdempotencyMismatch);
        }
        match (record.state, record.response, record.run) {
            (_, _, Some(run)) if record.expires_at <= now => Err(EngineError::IdempotencyExpired { run }),
            (IdempotencyState::Completed, Some(response), _) => Ok(Once::Done(response)),
            (IdempotencyState::Failed, _, _) if record.attempts >= limits::IDEMPOTENCY_ATTEMPTS_MAX => {
                Err(EngineError::IdempotencySpent)
            }
            // It failed between the two looks, and may be tried again.
            _ => Err(EngineError::IdempotencyConflict),
        }
    }

    /// Keeps the key of a request that is still being worked on.
    #[boxed]
    pub async fn renew_once(&self, request: &OnceRequest) -> Result<(), EngineError> {
        let renew = RenewIdempotency {
            tenant: request.tenant,
            client: request.key.client.clone(),
            key: request.key.key.clone(),
            lock_until: self.0.now() + limits::IDEMPOTENCY_REQUEST_LOCK,
        };
        self.0.0.store.write(renew).await?;
        Ok(())
    }

    /// The answer to a request, to be kept in the commit that does what it asks for.
    pub fn answer_of(&self, request: &OnceRequest, response: Json) -> FinishIdempotency {
        self.finished(request, Ok(response))
    }

    /// Keeps the answer for repeats, or lets the request be made again if it failed.
    #[boxed]
    pub async fn finish_once(&self, request: &OnceRequest, outcome: Result<Json, String>) -> Result<(), EngineError> {
        self.0.0.store.write(self.finished(request, outcome)).await?;
        Ok(())
    }

    fn finished(&self, request: &OnceRequest, outcome: Result<Json, String>) -> FinishIdempotency {
        let now = self.0.now();
        let (state, response, error, kept) = match outcome {
            Ok(response) => (IdempotencyState::Completed, Some(response), None, limits::IDEMPOTENCY_COMPLETED_TTL),
            Err(error) => (IdempotencyState::Failed, None, Some(error), limits::IDEMPOTENCY_FAILED_TTL),
        };
        FinishIdempotency {
            tenant: request.tenant,
            client: request.key.client.clone(),
            key: request.key.key.clone(),
            state,
            response,
            error,
            at: now,
            expires_at: now + kept,
        }
    }
}
