//! HTTPS on the listener.
//!
//! [`TlsOptions`] names files. [`Tls`] is what they hold at the moment: connections take the configuration that counts
//! when they begin, and [`Tls::follow`] reads the files again when they change, so that a new certificate drops no
//! connection. Files that cannot be used while the server runs leave the old ones in force, and the log says so.
//!
//! With an authority for workers ([`TlsOptions::worker_ca`]) a client may present a certificate, and [`peer`] reads from it
//! which worker that is.

mod files;
mod issuer;
mod peer;
mod plain;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use interlock_core::time::{Millis, Timestamp};
use interlock_engine::Engine;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub use files::TlsError;
pub use issuer::WorkerIssuer;
pub use peer::PeerWorker;
pub(crate) use plain::redirect;

use files::{Fingerprint, LoadedTls};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// A certificate that ends within this span is worth a warning, once a day.
const EXPIRES_SOON: Millis = Millis::from_hours(24 * 14);
const REMIND_EVERY: Millis = Millis::from_hours(24);

/// The files behind HTTPS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// The server's certificate and those between it and its authority, in PEM.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authority that signs the certificates of workers.
    pub worker_ca: Option<WorkerCaFiles>,
    /// How long those are good.
    pub worker_lifetime: Millis,
}

/// The authority of workers: its certificates, the newest first, and the newest one's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCaFiles {
    pub certificates: PathBuf,
    pub key: PathBuf,
}

/// What the files hold now. Cheap to clone; all clones change together.
#[derive(Clone)]
pub struct Tls {
    options: Arc<TlsOptions>,
    loaded: Arc<RwLock<Arc<LoadedTls>>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. A certificate that is over is taken, with a warning: clients will say what they think of it.
    pub fn open(options: TlsOptions, now: Timestamp) -> Result<Self, TlsError> {
        let loaded = LoadedTls::read(&options)?;
        warn_of_expiry(&loaded, now);
        Ok(Self { options: Arc::new(options), loaded: Arc::new(RwLock::new(Arc::new(loaded))) })
    }

    fn current(&self) -> Arc<LoadedTls> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current().config))
    }

    /// What signs the certificates of workers, if there is anything.
    pub(crate) fn worker_issuer(&self) -> Option<Arc<WorkerIssuer>> {
        self.current().worker_issuer.clone()
    }

    /// Until when the server's certificate is good.
    pub fn expires_at(&self) -> Timestamp {
        self.current().expires_at
    }

    /// Reads the files again whenever they have changed, until `shutdown`.
    pub(crate) async fn follow(self, engine: Engine, shutdown: CancellationToken) {
        let mut seen = self.current().fingerprint;
        let mut reminded_at = engine.now();
        while shutdown.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            if engine.now().since(reminded_at) >= REMIND_EVERY {
                reminded_at = engine.now();
                warn_of_expiry(&self.current(), reminded_at);
            }
            let options = Arc::clone(&self.options);
            // A file may stand on a slow disk.
            let Ok(found) = tokio::task::spawn_blocking(move || Fingerprint::of(&options)).await else { continue };
            // Unreadable for a moment, as while it is replaced: looked at again.
            let Some(found) = found.filter(|found| *found != seen) else { continue };
            match self.reload() {
                Ok(()) => {
                    seen = found;
                    tracing::info!("the certificates have changed and are in use now, for new connections");
                    warn_of_expiry(&self.current(), engine.now());
                }
                Err(error) => {
                    // Said once for each state of the files: half of a pair may be written yet.
                    seen = found;
                    tracing::error!(%error, "the new certificates cannot be used; the old ones stay in force");
                }
            }
        }
    }

    fn reload(&self) -> Result<(), TlsError> {
        let fresh = Arc::new(LoadedTls::read(&self.options)?);
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

fn warn_of_expiry(loaded: &LoadedTls, now: Timestamp) {
    let at = jiff::Timestamp::from_millisecond(loaded.expires_at.0).unwrap_or_default();
    if loaded.expires_at <= now {
        tracing::warn!(expired_at = %at, "the server's certificate has expired: clients will refuse it; replace the file");
    } else if loaded.expires_at.since(now) < EXPIRES_SOON {
        tracing::warn!(expires_at = %at, "the server's certificate expires soon; replace the file");
    }
}
