//! The files behind HTTPS, read and checked together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlock_core::json::Hash;
use interlock_core::time::Timestamp;
use interlock_pki::{Authority, CertificateFacts, PkiError};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::TlsOptions;
use super::issuer::WorkerIssuer;
use crate::private_file;

/// The longest file of certificates, or of a key, that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why HTTPS cannot be spoken with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: it is longer than {max} bytes, so it is no file of certificates", path.display(), max = FILE_BYTES_MAX)]
    TooLong { path: PathBuf },
    #[error("{}: there is no certificate in it; a PEM file with `-----BEGIN CERTIFICATE-----` is expected", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{}: there is no private key in it that can be read; a PEM file with `-----BEGIN PRIVATE KEY-----` is expected", path.display())]
    NoKey { path: PathBuf },
    #[error("the key in {} does not belong to the certificate in {}: give the two that were made together", key.display(), certificate.display())]
    KeyMismatch { key: PathBuf, certificate: PathBuf },
    #[error("{}: {source}", path.display())]
    Certificate { path: PathBuf, source: PkiError },
    #[error("{}: {what}", path.display())]
    Refused { path: PathBuf, what: String },
}

/// What the files say, hashed: other bytes are a change, whatever the clock of the disk says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(Hash);

impl Fingerprint {
    pub fn of(options: &TlsOptions) -> Option<Self> {
        let mut all = Vec::new();
        for path in paths(options) {
            let bytes = read(path).ok()?;
            all.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            all.extend_from_slice(bytes.as_bytes());
        }
        Some(Self(Hash::of(&all)))
    }
}

fn paths(options: &TlsOptions) -> impl Iterator<Item = &Path> {
    let ca = options.worker_ca.iter().flat_map(|ca| [&*ca.certificates, &*ca.key]);
    [&*options.certificate, &*options.key].into_iter().chain(ca)
}

/// The files, ready to be used.
pub(super) struct LoadedTls {
    pub config: Arc<ServerConfig>,
    pub worker_issuer: Option<Arc<WorkerIssuer>>,
    pub expires_at: Timestamp,
    pub fingerprint: Fingerprint,
}

impl LoadedTls {
    pub fn read(options: &TlsOptions) -> Result<Self, TlsError> {
        let (certificate, key) = (&options.certificate, &options.key);
        let text = read(certificate)?;
        let chain = chain(certificate, &text)?;
        let expires_at = match chain.first() {
            Some(first) => {
                CertificateFacts::of_der(first)
                    .map_err(|source| TlsError::Certificate { path: certificate.clone(), source })?
                    .not_after
            }
            None => return Err(TlsError::NoCertificate { path: certificate.clone() }),
        };
        let private = PrivateKeyDer::from_pem_slice(read_key(key)?.as_bytes())
            .map_err(|_| TlsError::NoKey { path: key.clone() })?;
        let worker_issuer = options.worker_ca.as_ref().map(|ca| {
            let (pem, signing) = (read(&ca.certificates)?, read_key(&ca.key)?);
            let at = |source| TlsError::Certificate { path: ca.certificates.clone(), source };
            let authority = Authority::load(&pem, &signing).map_err(at)?;
            let issuer = WorkerIssuer::new(authority, options.worker_lifetime).map_err(at)?;
            Ok::<_, TlsError>((self::chain(&ca.certificates, &pem)?, Arc::new(issuer)))
        });
        let (roots, worker_issuer) = worker_issuer.transpose()?.unzip();
        let mut config = config(roots.unwrap_or_default(), certificate)?
            .with_single_cert(chain, private)
            .map_err(|error| unusable(error, options))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let fingerprint = Fingerprint::of(options)
            .ok_or_else(|| TlsError::Refused { path: certificate.clone(), what: "it changes right now".to_owned() })?;
        Ok(Self { config: Arc::new(config), worker_issuer, expires_at, fingerprint })
    }
}

type ServerBuilder = rustls::ConfigBuilder<ServerConfig, rustls::server::WantsServerCert>;

/// With authorities of workers, a client may present a certificate, and one that they have not signed ends the handshake.
/// Browsers and the command line present none.
fn config(worker_roots: Vec<CertificateDer<'static>>, path: &Path) -> Result<ServerBuilder, TlsError> {
    let refused = |what: String| TlsError::Refused { path: path.to_owned(), what };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(error.to_string()))?;
    if worker_roots.is_empty() {
        return Ok(builder.with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    for root in worker_roots {
        roots.add(root).map_err(|error| refused(error.to_string()))?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| refused(error.to_string()))?;
    Ok(builder.with_client_cert_verifier(verifier))
}

fn unusable(error: rustls::Error, options: &TlsOptions) -> TlsError {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::KeyMismatch { key: options.key.clone(), certificate: options.certificate.clone() }
        }
        error => TlsError::Refused { path: options.certificate.clone(), what: error.to_string() },
    }
}

fn chain(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let none = || TlsError::NoCertificate { path: path.to_owned() };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(|_| none())?;
    if chain.is_empty() { Err(none()) } else { Ok(chain) }
}

fn read(path: &Path) -> Result<String, TlsError> {
    check_length(path)?;
    std::fs::read_to_string(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// A key is read only where nobody else can get at it.
fn read_key(path: &Path) -> Result<String, TlsError> {
    check_length(path)?;
    private_file::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

fn check_length(path: &Path) -> Result<(), TlsError> {
    let found = std::fs::metadata(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })?;
    if found.len() > FILE_BYTES_MAX {
        return Err(TlsError::TooLong { path: path.to_owned() });
    }
    Ok(())
}
