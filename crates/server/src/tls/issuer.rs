//! Certificates for workers, signed on request.

use interlock_core::time::{Millis, Timestamp};
use interlock_pki::{Authority, CertificateFacts, PkiError, SigningRequest, WorkerIdentity};

/// The authority of workers, as routes use it.
pub struct WorkerIssuer {
    authority: Authority,
    serial: String,
    /// How long each certificate is good.
    lifetime: Millis,
}

/// A signed certificate, and when it ends.
pub struct SignedWorker {
    pub certificate: String,
    pub expires_at: Timestamp,
}

impl WorkerIssuer {
    pub(super) fn new(authority: Authority, lifetime: Millis) -> Result<Self, PkiError> {
        let serial = CertificateFacts::of_pem(authority.certificates())?.serial;
        Ok(Self { authority, serial, lifetime })
    }

    /// Of the authority that signs now.
    pub fn serial(&self) -> &str {
        &self.serial
    }

    /// What a worker trusts its server by, where the same authority has signed the server's certificate.
    pub fn authorities(&self) -> &str {
        self.authority.certificates()
    }

    pub fn sign(
        &self,
        request: &SigningRequest,
        identity: &WorkerIdentity,
        now: Timestamp,
    ) -> Result<SignedWorker, PkiError> {
        let certificate = self.authority.issue_worker(request, identity, now, self.lifetime)?;
        Ok(SignedWorker { certificate, expires_at: now + self.lifetime })
    }
}
