//! Who is behind a change, and how the tenant's audit log gets to know of it: by a note in the commit of the change.

use interlock_core::ids::{KeyId, TenantId};
use interlock_core::json::Json;
use interlock_core::run::change::key_in_words;
use interlock_store::{AttachedWrites, Done, FinishIdempotency, Write};
use serde_json::Value;

use super::AuditEvent;
use crate::Engine;
use crate::error::EngineError;

/// The person or key that asks for a change of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    initiator: &'static str,
    name: Option<String>,
    /// The name of the key, and whether the name above is its owner's.
    key: Option<ActingKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ActingKey {
    name: String,
    id: String,
    owned: bool,
}

/// The fields of an entry's details that name the key: as people know it, and as no other key is called.
const BY_KEY: &str = "by_key";
const BY_KEY_ID: &str = "by_key_id";

impl Actor {
    /// A person, or the client that a key belongs to.
    pub fn user(name: impl Into<String>) -> Self {
        Self { initiator: "user", name: Some(name.into()), key: None }
    }

    /// A user without a known name.
    pub fn unnamed() -> Self {
        Self { initiator: "user", name: None, key: None }
    }

    /// The server itself.
    pub fn system() -> Self {
        Self { initiator: "system", name: None, key: None }
    }

    /// The same by a key: the log names it as people know it. An owner stays the actor, so that all that was done in their
    /// name is found under it.
    #[must_use]
    pub fn with_key(self, (name, id): (&str, KeyId), owner: Option<&str>) -> Self {
        let key = ActingKey { name: name.to_owned(), id: id.to_string(), owned: owner.is_some() };
        Self { key: Some(key), ..self }
    }

    /// What rows keep of the actor.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// What the log tells of something that the actor has done. The details must hold no secret.
    pub fn did(&self, kind: &'static str, subject: impl ToString, details: &Value) -> AuditEvent {
        let mut details = details.clone();
        if let (Some(key), Some(fields)) = (&self.key, details.as_object_mut()) {
            fields.insert(BY_KEY.to_owned(), key.name.clone().into());
            fields.insert(BY_KEY_ID.to_owned(), key.id.clone().into());
        }
        AuditEvent {
            kind,
            initiator: self.initiator,
            actor: match &self.key {
                Some(key) if !key.owned => Some(key_in_words(&key.name, None)),
                _ => self.name.clone(),
            },
            subject: Some(subject.to_string()),
            details: Json::trusted(details.to_string()),
        }
    }
}

impl Engine {
    /// Commits a change of configuration with its note, and with the answer to the request that asks for it.
    pub(crate) async fn write_answering<W: Write>(
        &self,
        tenant: TenantId,
        write: W,
        what: AuditEvent,
        answer: Option<FinishIdempotency>,
    ) -> Result<W::Answer, EngineError>
    where
        W::Answer: Done,
    {
        let along = AttachedWrites { answer, notes: self.note_of(tenant, what).into_iter().collect() };
        Ok(self.0.store.write_with(write, along).await?)
    }

    /// The same for what no request under a key asks for.
    pub(crate) async fn write_noted<W: Write>(
        &self,
        tenant: TenantId,
        write: W,
        what: AuditEvent,
    ) -> Result<W::Answer, EngineError>
    where
        W::Answer: Done,
    {
        self.write_answering(tenant, write, what, None).await
    }
}
