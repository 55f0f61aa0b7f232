//! Connections for protocols other than HTTP, under the same rules: the name is looked up once, every address is judged,
//! and what was judged is what is connected to. What is said on them is always encrypted.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls_platform_verifier::Verifier;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::client::{ClientConfig, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{Error as TlsError, RootCertStore};

use crate::client::Outbound;
use crate::error::OutboundError;
use crate::limits;
use crate::resolver::Resolve;
use crate::rules::Forbidden;

/// What connections are made with.
pub(crate) struct Sockets {
    pub resolver: Arc<dyn Resolve>,
    pub roots_pem: Vec<Vec<u8>>,
}

/// A connection that is not encrypted yet. Only [`Outbound::secure`] makes it of use for anything secret.
pub struct Socket {
    pub stream: TcpStream,
    host: String,
}

pub type Secured = TlsStream<TcpStream>;

impl Outbound {
    /// Connects to a host by name or address.
    pub async fn connect(&self, host: &str, port: u16) -> Result<Socket, OutboundError> {
        let connecting = self.connect_to_any(host, port);
        let timeout = limits::CONNECT_TIMEOUT;
        let stream = tokio::time::timeout(timeout, connecting)
            .await
            .map_err(|_| OutboundError::NotConnected(format!("no answer within {} ms", timeout.as_millis())))??;
        Ok(Socket { stream, host: host.to_owned() })
    }

    async fn connect_to_any(&self, host: &str, port: u16) -> Result<TcpStream, OutboundError> {
        let addresses = if let Ok(address) = host.parse::<IpAddr>() {
            vec![address]
        } else {
            let found = self.of_sockets()?.resolver.resolve(host.to_owned()).await;
            found.map_err(|error| OutboundError::NotConnected(error.to_string()))?
        };
        let mut closed: Option<Forbidden> = None;
        let mut last = "the name has no address".to_owned();
        for address in addresses.into_iter().take(limits::ADDRESSES_MAX) {
            if let Err(forbidden) = self.check_address(address, Some(port)) {
                closed = closed.or(Some(forbidden));
                continue;
            }
            match TcpStream::connect(SocketAddr::new(address, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error.to_string(),
            }
        }
        Err(closed.map_or(OutboundError::NotConnected(last), OutboundError::Forbidden))
    }

    /// Encrypts a connection, and makes sure that the other side is the host that was asked for.
    pub async fn secure(&self, socket: Socket) -> Result<Secured, OutboundError> {
        let setup = |error: TlsError| OutboundError::Setup(error.to_string());
        let verifier = self.of_sockets()?.verifier().map_err(setup)?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(setup)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let name = ServerName::try_from(socket.host)
            .map_err(|_| OutboundError::InvalidUrl("the host's name is not one".to_owned()))?;
        let securing = TlsConnector::from(Arc::new(config)).connect(name, socket.stream);
        let timeout = limits::CONNECT_TIMEOUT;
        let secured = tokio::time::timeout(timeout, securing).await;
        let secured =
            secured.map_err(|_| OutboundError::NotConnected(format!("no answer within {} ms", timeout.as_millis())))?;
        secured.map_err(|error| OutboundError::NotConnected(error.to_string()))
    }

    fn of_sockets(&self) -> Result<&Sockets, OutboundError> {
        self.sockets().ok_or_else(|| OutboundError::Setup("there is no network here".to_owned()))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

impl Sockets {
    /// The machine's own certificates and the added ones; only the latter where it has none.
    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
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
