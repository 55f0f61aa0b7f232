//! Certificates for workers, signed on request.

use interlock_core::time::Timestamp;
use interlock_pki::{Authority, PkiError, SigningRequest, WORKER_LIFETIME, WorkerIdentity};

/// The authority of workers, as routes use it.
pub struct WorkerIssuer(Authority);

/// A signed certificate, and when it ends.
pub struct SignedWorker {
    pub certificate: String,
    pub expires_at: Timestamp,
}

impl WorkerIssuer {
    pub(super) fn new(authority: Authority) -> Self {
        Self(authority)
    }

    /// What a worker trusts its server by, where the same authority has signed the server's certificate.
    pub fn authorities(&self) -> &str {
        self.0.certificates()
    }

    pub fn sign(
        &self,
        request: &SigningRequest,
        identity: &WorkerIdentity,
        now: Timestamp,
    ) -> Result<SignedWorker, PkiError> {
        let certificate = self.0.issue_worker(request, identity, now)?;
        Ok(SignedWorker { certificate, expires_at: now + WORKER_LIFETIME })
    }
}
