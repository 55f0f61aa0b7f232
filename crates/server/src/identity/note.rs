//! What happens to keys, people and visits goes into the tenant's audit log, committed together with the change itself.

use interlock_core::ids::TenantId;
use interlock_core::json::Json;
use interlock_engine::audit::Happening;
use interlock_engine::{Engine, EngineError};
use interlock_store::{SubmitError, TenantWrite};

use super::{Caller, Identity};
use crate::api_error::ApiError;

/// What a caller has done.
pub fn by(caller: &Caller, kind: &'static str, subject: impl ToString, details: &serde_json::Value) -> Happening {
    done(kind, Some(caller.name()), subject, details)
}

/// What somebody has done who is known by name, or by nothing.
pub fn done(
    kind: &'static str,
    actor: Option<String>,
    subject: impl ToString,
    details: &serde_json::Value,
) -> Happening {
    let details = Json::trusted(details.to_string());
    Happening { kind, initiator: "user", actor, subject: Some(subject.to_string()), details }
}

/// Writes, with a note where the engine keeps a log.
pub async fn write_noted<W: TenantWrite>(
    engine: &Engine,
    tenant: TenantId,
    write: W,
    what: Happening,
) -> Result<W::Answer, SubmitError> {
    let store = engine.for_tenant(tenant);
    match engine.note_of(tenant, what) {
        Some(note) => store.write_noted(write, note).await,
        None => store.write(write).await,
    }
}

impl Identity {
    /// Like [`Identity::write`], with a note for the audit log.
    pub async fn write_noted<W: TenantWrite>(
        &self,
        tenant: TenantId,
        write: W,
        what: Happening,
    ) -> Result<W::Answer, ApiError> {
        let answer = write_noted(self.engine(), tenant, write, what).await.map_err(EngineError::from)?;
        self.forget();
        Ok(answer)
    }
}
