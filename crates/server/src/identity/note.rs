//! What happens to keys, people and visits goes into the tenant's audit log, committed together with the change itself.
//! What the engine changes for a [`Caller`] it notes itself, under the caller's [`Actor`].

use interlock_core::ids::TenantId;
use interlock_engine::audit::{Actor, AuditEvent};
use interlock_engine::{Engine, EngineError};
use interlock_store::{AddAuditNote, AttachedWrites, Done, FinishIdempotency, SubmitError, TenantWrite};

use super::{Caller, Identity};
use crate::api_error::ApiError;

/// What a caller has done.
pub fn by(caller: &Caller, kind: &'static str, subject: impl ToString, details: &serde_json::Value) -> AuditEvent {
    caller.actor().did(kind, subject, details)
}

/// What an actor has done who is known by name, or not at all.
pub fn done(
    kind: &'static str,
    actor: Option<String>,
    subject: impl ToString,
    details: &serde_json::Value,
) -> AuditEvent {
    actor.map_or_else(Actor::unnamed, Actor::user).did(kind, subject, details)
}

/// Writes, with a note where the engine keeps a log, and with the answer to the request that asks for it.
pub async fn write_answering<W: TenantWrite>(
    engine: &Engine,
    tenant: TenantId,
    write: W,
    what: AuditEvent,
    answer: Option<FinishIdempotency>,
) -> Result<W::Answer, SubmitError>
where
    W::Answer: Done,
{
    let along = AttachedWrites { answer, notes: engine.note_of(tenant, what).into_iter().collect() };
    engine.for_tenant(tenant).write_with(write, along).await
}

/// The same for what no request under a key asks for.
pub async fn write_noted<W: TenantWrite>(
    engine: &Engine,
    tenant: TenantId,
    write: W,
    what: AuditEvent,
) -> Result<W::Answer, SubmitError>
where
    W::Answer: Done,
{
    write_answering(engine, tenant, write, what, None).await
}

impl Identity {
    /// Notes that somebody was not let in. It changes nothing that the note could be committed with.
    pub async fn note_refused(&self, tenant: TenantId, details: &serde_json::Value) -> Result<(), ApiError> {
        let what = done("login.failed", None, tenant, details);
        if let Some(note) = self.engine().note_of(tenant, what) {
            self.engine().for_tenant(tenant).write(AddAuditNote(note)).await.map_err(EngineError::from)?;
        }
        Ok(())
    }

    /// Like [`Identity::write`], with a note for the audit log.
    pub async fn write_noted<W: TenantWrite>(
        &self,
        tenant: TenantId,
        write: W,
        what: AuditEvent,
    ) -> Result<W::Answer, ApiError>
    where
        W::Answer: Done,
    {
        self.write_answering(tenant, write, what, None).await
    }

    /// The same, with the answer to the request that asks for it.
    pub async fn write_answering<W: TenantWrite>(
        &self,
        tenant: TenantId,
        write: W,
        what: AuditEvent,
        answer: Option<FinishIdempotency>,
    ) -> Result<W::Answer, ApiError>
    where
        W::Answer: Done,
    {
        let answer = write_answering(self.engine(), tenant, write, what, answer).await.map_err(EngineError::from)?;
        self.forget();
        Ok(answer)
    }
}
