//! A connection to the broker. What it may send for one command is bounded: more ends the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, FromRedisValue, Pipeline, RedisError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::address::BrokerAddress;
use crate::limits;

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error("the broker cannot be reached: {0}")]
    Unreachable(String),
    #[error("the broker refuses: {0}")]
    Refused(String),
    /// The stream, or its group, has gone.
    #[error("the broker has lost the stream")]
    StreamLost,
    #[error("the broker has sent more than {} bytes at once", limits::REPLY_BYTES_MAX)]
    TooLong,
}

/// A connection. Clones share it, and their commands go out together.
#[derive(Clone)]
pub struct Connection {
    commands: MultiplexedConnection,
    allowance: Arc<Allowance>,
}

impl Connection {
    pub async fn open(address: &BrokerAddress) -> Result<Self, BrokerError> {
        let opening = timeout(limits::CONNECT_TIMEOUT, Self::connect(address)).await;
        opening.map_err(|_| BrokerError::Unreachable(format!("{address} does not answer")))?
    }

    async fn connect(address: &BrokerAddress) -> Result<Self, BrokerError> {
        let unreachable = |error: io::Error| BrokerError::Unreachable(format!("{address}: {error}"));
        let stream = TcpStream::connect((&*address.host, address.port)).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        if !address.is_encrypted {
            return Self::over(address, stream).await;
        }
        let failed = |what: String| BrokerError::Unreachable(format!("{address}: {what}"));
        let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(error.to_string()))?;
        let config = client_config(address).map_err(|error| failed(error.to_string()))?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(unreachable)?;
        Self::over(address, stream).await
    }

    async fn over<S>(address: &BrokerAddress, stream: S) -> Result<Self, BrokerError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let allowance = Arc::new(Allowance::default());
        let stream = BoundedStream { stream, allowance: Arc::clone(&allowance) };
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(limits::COMMAND_TIMEOUT));
        let opened = MultiplexedConnection::new_with_config(&address.login, stream, config).await;
        let (commands, driver) = opened.map_err(|error| BrokerError::Unreachable(format!("{address}: {error}")))?;
        // It ends with the last clone, or with the connection.
        tokio::spawn(driver);
        Ok(Self { commands, allowance })
    }

    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BrokerError> {
        self.allowance.renew();
        command.query_async(&mut self.commands.clone()).await.map_err(|error| self.error(&error))
    }

    pub(crate) async fn query_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, BrokerError> {
        self.allowance.renew();
        commands.query_async(&mut self.commands.clone()).await.map_err(|error| self.error(&error))
    }

    fn error(&self, error: &RedisError) -> BrokerError {
        if self.allowance.is_exceeded.load(Ordering::Relaxed) {
            return BrokerError::TooLong;
        }
        match error.code() {
            Some("NOGROUP" | "UNBLOCKED") => BrokerError::StreamLost,
            Some(_) => BrokerError::Refused(error.to_string()),
            None => BrokerError::Unreachable(error.to_string()),
        }
    }
}

/// The authorities that are named, or else the machine's own, with the same cryptography as everywhere.
fn client_config(address: &BrokerAddress) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    if let Some(authorities) = &address.authorities {
        return Ok(builder.with_root_certificates(Arc::clone(authorities)).with_no_client_auth());
    }
    let verifier = rustls_platform_verifier::Verifier::new(provider)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// What may still be read until the next command goes out.
struct Allowance {
    bytes: AtomicUsize,
    is_exceeded: AtomicBool,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { bytes: AtomicUsize::new(limits::REPLY_BYTES_MAX), is_exceeded: AtomicBool::new(false) }
    }
}

impl Allowance {
    fn renew(&self) {
        self.bytes.store(limits::REPLY_BYTES_MAX, Ordering::Relaxed);
    }

    /// Takes what was read off; false where it was more than allowed.
    fn take(&self, bytes: usize) -> bool {
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if taken.is_err() {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        taken.is_ok()
    }
}

struct BoundedStream<S> {
    stream: S,
    allowance: Arc<Allowance>,
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        if self.allowance.take(buf.filled().len() - before) {
            return read;
        }
        Poll::Ready(Err(io::Error::other("the broker has sent too much at once")))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
