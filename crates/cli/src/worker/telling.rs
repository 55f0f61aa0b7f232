//! A transport that prints whether the server answers: once when the worker is connected, and once for each reason why it
//! cannot be.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::ids::SessionId;
use interlock_core::work::{EffectAnswer, EffectIntent, EffectOutcome, WorkerHello};
use interlock_protocol::agent::{
    Complete, Completed, Heartbeat, OfferAnswer, OutputBatch, OutputTaken, Poll, Polled, Registered, Renewed,
};
use interlock_protocol::transport::{Transport, TransportError};

use crate::client::{UNTRUSTED_SERVER, is_untrusted};
use crate::output::say_aside;

/// How the error of a handshake begins that the server has broken off.
const ALERT: &str = "received fatal alert: ";
/// Alerts about the certificate that the worker shows.
const REFUSED_CERTIFICATE: [&str; 8] = [
    "UnknownCA",
    "BadCertificate",
    "CertificateExpired",
    "CertificateRevoked",
    "CertificateUnknown",
    "UnsupportedCertificate",
    "AccessDenied",
    "HandshakeFailure",
];

#[derive(Clone)]
pub struct ReportingTransport<T> {
    inner: T,
    server: String,
    tasks: String,
    /// The folder of the worker's certificate, where it has one.
    identity: Option<PathBuf>,
    /// What was printed last of a server that cannot be reached; empty while it can be.
    told: Arc<Mutex<String>>,
}

impl<T> ReportingTransport<T> {
    pub fn new(inner: T, server: &str, tasks: &[&str]) -> Self {
        Self { inner, server: server.to_owned(), tasks: tasks.join(", "), identity: None, told: Arc::default() }
    }

    #[must_use]
    pub fn with_identity(self, identity: Option<PathBuf>) -> Self {
        Self { identity, ..self }
    }

    /// Prints why there is no connection, unless that was printed last.
    fn tell(&self, what: &str) {
        let fresh = why_alone(&self.server, self.identity.as_deref(), what);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != fresh {
            say_aside(&fresh);
            *told = fresh;
        }
    }
}

/// Why the worker has no connection, and what helps.
fn why_alone(server: &str, identity: Option<&Path>, what: &str) -> String {
    if is_untrusted(what) {
        return format!("interlock: no connection to {server}; this worker goes on trying. {UNTRUSTED_SERVER}");
    }
    let refused = what
        .split_once(ALERT)
        .and_then(|(_, alert)| REFUSED_CERTIFICATE.into_iter().find(|refused| alert.starts_with(refused)));
    match (refused, identity) {
        (Some(alert), Some(folder)) => format!(
            "interlock: the server at {server} does not accept this worker's certificate ({alert}); this worker goes on trying. \
             Enrol it anew: `interlock worker token create` makes a token, then start it with --enrol-token-file and with the \
             folder {} removed. Beside an identity that is there, a token changes nothing.",
            folder.display()
        ),
        _ => format!(
            "interlock: no server answers at {server}; this worker goes on trying. `interlock server` or `interlock up` starts \
             one, --server names another address."
        ),
    }
}

impl<T: Transport> Transport for ReportingTransport<T> {
    async fn register(&self, hello: WorkerHello) -> Result<Registered, TransportError> {
        let queues = hello.queues.join(", ");
        let registered = self.inner.register(hello).await;
        match &registered {
            Ok(_) => {
                self.told.lock().unwrap_or_else(PoisonError::into_inner).clear();
                say_aside(&format!("interlock: connected to {}; queues: {queues}; tasks: {}", self.server, self.tasks));
            }
            Err(TransportError::Unavailable(what)) => self.tell(what),
            Err(TransportError::Refused { .. }) => {}
        }
        registered
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<Renewed, TransportError> {
        self.inner.heartbeat(heartbeat).await
    }

    async fn poll(&self, poll: Poll) -> Result<Polled, TransportError> {
        self.inner.poll(poll).await
    }

    async fn complete(&self, complete: Complete) -> Result<Completed, TransportError> {
        self.inner.complete(complete).await
    }

    async fn intent(&self, session: SessionId, intent: EffectIntent) -> Result<EffectAnswer, TransportError> {
        self.inner.intent(session, intent).await
    }

    async fn outcome(&self, session: SessionId, outcome: EffectOutcome) -> Result<(), TransportError> {
        self.inner.outcome(session, outcome).await
    }

    async fn output(&self, session: SessionId, batch: OutputBatch) -> Result<OutputTaken, TransportError> {
        self.inner.output(session, batch).await
    }

    async fn answer_offer(&self, session: SessionId, answer: OfferAnswer) -> Result<(), TransportError> {
        self.inner.answer_offer(session, answer).await
    }

    async fn unregister(&self, session: SessionId) -> Result<(), TransportError> {
        self.inner.unregister(session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_refused_is_no_server_that_is_away() {
        let told = |identity: Option<&str>, what: &str| why_alone("https://h", identity.map(Path::new), what);
        let alert = "client error (SendRequest): connection error: received fatal alert: UnknownCA";
        let refused = told(Some("/etc/w1"), alert);
        for part in ["does not accept", "UnknownCA", "worker token create", "/etc/w1", "changes nothing"] {
            assert!(refused.contains(part), "{refused}");
        }
        let untrusted = told(Some("/etc/w1"), "client error (Connect): invalid peer certificate: UnknownIssuer");
        assert!(untrusted.contains("--ca FILE") && !untrusted.contains("no server answers"), "{untrusted}");
        for what in ["tcp connect error: Connection refused", "received fatal alert: InternalError"] {
            assert!(told(Some("/etc/w1"), what).contains("no server answers at https://h"), "{what}");
        }
        assert!(told(None, alert).contains("no server answers"), "it shows no certificate");
    }
}
