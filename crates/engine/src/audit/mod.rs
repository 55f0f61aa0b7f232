//! The tenants' audit logs and the evidence of runs.
//!
//! [`append`] brings what was committed into a tenant's log: rows of the journal by way of the feed, and notes of what
//! happened apart from runs. [`read`] gives entries back, with what their hashes stand for; [`proof`] finds a run's entries
//! and proves them; [`bundle`] makes the evidence of a run; [`erase`] finds what tells of a person; [`progress`] says how far a log is behind. [`actor`] names who changes configuration. All hashing and signing is `interlock-evidence`'s.

mod actor;
pub(crate) mod append;
mod bodies;
pub mod bundle;
pub mod erase;
mod facts;
pub mod progress;
mod proof;
pub mod read;

pub use actor::Actor;
pub(crate) use bodies::SETTLED;
use interlock_core::ids::TenantId;
use interlock_core::json::{Hash, Json};
use interlock_evidence::{PublicKey, SigningKey};
use interlock_store::AuditNote;

use crate::Engine;
use crate::error::EngineError;
use crate::parts::Audit;

/// Something that happened apart from runs.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// `key.created`, `login.failed` …
    pub kind: &'static str,
    pub initiator: &'static str,
    pub actor: Option<String>,
    /// What it is about, by its id.
    pub subject: Option<String>,
    pub details: Json,
}

impl Audit {
    /// The key that others verify with.
    pub fn key(&self) -> Result<&PublicKey, EngineError> {
        self.signing_key().map(SigningKey::public)
    }

    fn signing_key(&self) -> Result<&SigningKey, EngineError> {
        self.0.0.options.audit_key.as_ref().ok_or(EngineError::AuditClosed)
    }

    /// A note for the tenant's log, to be committed with what it tells of.
    pub fn note(&self, tenant: TenantId, what: AuditEvent) -> AuditNote {
        let AuditEvent { kind, initiator, actor, subject, details } = what;
        AuditNote {
            tenant,
            id: self.0.fresh_id(),
            at: self.0.now(),
            initiator: initiator.to_owned(),
            actor,
            kind: kind.to_owned(),
            subject,
            details,
        }
    }
}

/// Hashes that stand one behind the other in a column.
fn hashes(bytes: &[u8]) -> Vec<Hash> {
    bytes.as_chunks::<32>().0.iter().map(|bytes| Hash(*bytes)).collect()
}

fn bytes(hashes: &[Hash]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.0).collect()
}

fn broken(what: impl Into<String>) -> EngineError {
    EngineError::AuditBroken { what: what.into() }
}

impl Engine {
    /// A note of what happened apart from runs, where there is a log to note it in.
    pub fn note_of(&self, tenant: TenantId, what: AuditEvent) -> Option<AuditNote> {
        self.0.options.audit_key.as_ref().map(|_| self.audit().note(tenant, what))
    }
}
