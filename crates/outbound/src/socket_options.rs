//! What connections for protocols other than HTTP are made with.

use std::sync::Arc;

use rustls_platform_verifier::Verifier;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{Error as TlsError, RootCertStore};

use crate::resolver::Resolve;

/// How names are looked up, and whose certificates are trusted beside the machine's own.
pub(crate) struct SocketOptions {
    pub resolver: Arc<dyn Resolve>,
    pub roots_pem: Vec<Vec<u8>>,
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

impl SocketOptions {
    /// The machine's own certificates and the added ones; only the latter where it has none.
    pub(crate) fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        let invalid = |_| TlsError::General("an added certificate cannot be read".to_owned());
        let added = self.roots_pem.iter().flat_map(|pem| CertificateDer::pem_slice_iter(pem));
        let added: Vec<CertificateDer<'static>> = added.collect::<Result<_, _>>().map_err(invalid)?;
        if let Ok(verifier) = Verifier::new_with_extra_roots(added.clone(), provider()) {
            return Ok(Arc::new(verifier));
        }
        let mut roots = RootCertStore::empty();
        for certificate in added {
            roots.add(certificate)?;
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        verifier
            .map(|verifier| verifier as Arc<dyn ServerCertVerifier>)
            .map_err(|error| TlsError::General(error.to_string()))
    }
}
