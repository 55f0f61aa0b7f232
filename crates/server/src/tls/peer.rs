//! The worker behind a connection: what its certificate says, once the handshake has proven that it has the key.

use std::sync::Arc;

use interlock_core::time::Timestamp;
use interlock_pki::{CertificateFacts, WorkerIdentity};
use rustls::pki_types::CertificateDer;

/// A worker that has presented a certificate of our authority.
#[derive(Debug, Clone)]
pub struct PeerWorker(Arc<PresentedCertificate>);

#[derive(Debug)]
struct PresentedCertificate {
    identity: WorkerIdentity,
    expires_at: Timestamp,
}

impl PeerWorker {
    /// `None` where the client has presented nothing; an error where it has, and the certificate names no worker.
    pub(crate) fn of(presented: Option<&[CertificateDer<'_>]>) -> Result<Option<Self>, interlock_pki::PkiError> {
        let Some(first) = presented.and_then(|chain| chain.first()) else { return Ok(None) };
        let facts = CertificateFacts::of_der(first)?;
        let identity = WorkerIdentity::of_certificate(&facts)?;
        Ok(Some(Self(Arc::new(PresentedCertificate { identity, expires_at: facts.not_after }))))
    }

    /// The worker of a certificate that was presented before.
    pub fn of_uri(uri: &str, expires_at: Timestamp) -> Option<Self> {
        let identity = WorkerIdentity::from_uri(uri).ok()?;
        Some(Self(Arc::new(PresentedCertificate { identity, expires_at })))
    }

    pub fn identity(&self) -> &WorkerIdentity {
        &self.0.identity
    }

    pub fn expires_at(&self) -> Timestamp {
        self.0.expires_at
    }

    /// A connection may outlive the certificate by which it began.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.0.expires_at <= now
    }
}
