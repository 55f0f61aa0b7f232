//! Connections for protocols other than HTTP, under the same rules: the name is looked up once, every address is judged,
//! and what was judged is what is connected to. What is said on them is always encrypted.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::Error as TlsError;
use tokio_rustls::rustls::client::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::client::Outbound;
use crate::error::OutboundError;
use crate::limits;
use crate::rules::Forbidden;
use crate::socket_options::{SocketOptions, provider};

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
            let found = self.known_options()?.resolver.resolve(host.to_owned()).await;
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
        let verifier = self.known_options()?.verifier().map_err(setup)?;
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

    fn known_options(&self) -> Result<&SocketOptions, OutboundError> {
        self.socket_options().ok_or_else(|| OutboundError::Setup("there is no network here".to_owned()))
    }
}
