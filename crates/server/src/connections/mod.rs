//! Connections: who gets one, and for how long it may stay silent.
//!
//! [`serve`] accepts on a listener and answers by the router. [`counts::ConnectionCounts`] counts connections, in all and by source
//! address; [`proxies::TrustedProxies`] tells a request's source where a reverse proxy is between; [`linger::Lingering`]
//! closes them so that a refused client still reads its answer; [`open_files`] asks the operating system for as many files
//! as it gives. With [`Tls`] a connection begins with a handshake, within the same counts. How long a request's body may take is decided where it is read
//! ([`crate::body`]).

mod accept;
mod counts;
mod linger;
mod open_files;
mod proxies;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::Response;
use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use interlock_protocol::problem::{PROBLEM_JSON, Problem};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use accept::AcceptFailures;
pub use counts::source as source_of;
use counts::{ConnectionCounts, CountedConnection};
use linger::Lingering;
pub use proxies::TrustedProxies;

use crate::limits;
use crate::state::AppState;
use crate::tls::{PeerWorker, Tls, redirect};

/// Bounds on connections and on what may be read from them.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionOptions {
    /// Open connections of all clients together. Fewer where the operating system gives fewer files.
    pub connections_max: usize,
    /// Open connections from one address.
    pub per_address_max: usize,
    /// How long a connection may take for the head of its next request; also how long it may be idle.
    pub header_timeout: Duration,
    /// How long the handshake of HTTPS may take.
    pub handshake_timeout: Duration,
    /// How long a body may stay silent, and how long it may take as a whole.
    pub body_idle_timeout: Duration,
    pub body_timeout: Duration,
    /// Bytes that may be allocated for bodies that have not come in completely, of all connections.
    pub unfinished_bytes_max: usize,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            connections_max: 16_384,
            per_address_max: 4_096,
            header_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            body_idle_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_mins(2),
            unfinished_bytes_max: 256 << 20,
        }
    }
}

/// The address a request comes from: the client's, or that of a proxy before us that is not trusted to tell.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// A request that came by no connection, as in tests, comes from nowhere.
impl FromRequestParts<AppState> for PeerAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, Infallible> {
        let nowhere = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Ok(parts.extensions.get::<Self>().copied().unwrap_or(nowhere))
    }
}

/// The first byte of a connection that begins with a handshake (RFC 8446, a record of type `handshake`).
const TLS_HANDSHAKE: u8 = 0x16;
/// Files that are not connections: the store, its connections, logs.
const FILES_BESIDE: u64 = 256;
/// The answer to a client when all connections are taken.
static FULL: LazyLock<String> = LazyLock::new(|| {
    let problem = Problem::new(503, "CONNECTIONS_FULL", "too many connections are open; try again later");
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let length = body.len();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {PROBLEM_JSON}\r\nretry-after: 1\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
});

/// What answers connections.
#[derive(Clone)]
pub struct Front {
    pub router: Router,
    pub options: ConnectionOptions,
    pub proxies: TrustedProxies,
    /// HTTPS; plain HTTP where there is none.
    pub tls: Option<Tls>,
    /// Where those are sent who speak plain HTTP to the port of HTTPS.
    pub public_url: Option<Arc<str>>,
}

/// Answers until `shutdown` fires, and then what is under way.
pub async fn serve(listener: TcpListener, front: Front, shutdown: CancellationToken) {
    let counts = ConnectionCounts::new(within_files(front.options.connections_max), front.options.per_address_max);
    let connections = TaskTracker::new();
    let mut failures = AcceptFailures::default();
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                failures.over();
                let is_proxy = front.proxies.contains(peer.ip());
                let counted = if is_proxy { counts.take_for_proxy(peer.ip()) } else { counts.take(peer.ip()) };
                match counted {
                    Some(counted) => {
                        connections.spawn(answer(stream, counted, front.clone(), shutdown.clone()));
                    }
                    // Without a handshake a client of HTTPS understands nothing.
                    None if front.tls.is_some() => drop(stream),
                    None => turn_away(stream),
                }
            }
            Err(error) => failures.pause(&error, &shutdown).await,
        }
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

async fn answer(stream: TcpStream, counted: CountedConnection, front: Front, shutdown: CancellationToken) {
    let peer = counted.address();
    let Some(tls) = &front.tls else {
        return serve_http(Lingering::new(stream, counted), (peer, None), front, shutdown).await;
    };
    let limit = front.options.handshake_timeout;
    let handshake = tokio::time::timeout(limit, async {
        // Only looked at: the handshake begins with this byte.
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 || first[0] != TLS_HANDSHAKE {
            return Ok(Err(Lingering::new(stream, counted)));
        }
        tls.acceptor().accept(Lingering::new(stream, counted)).await.map(Ok)
    });
    let accepted: Result<io::Result<_>, _> = tokio::select! {
        accepted = handshake => accepted,
        () = shutdown.cancelled() => return,
    };
    match accepted {
        Ok(Ok(Ok(stream))) => match PeerWorker::of(stream.get_ref().1.peer_certificates()) {
            Ok(worker) => serve_http(stream, (peer, worker), front, shutdown).await,
            Err(error) => tracing::warn!(%peer, %error, "a client has presented a certificate that names no worker"),
        },
        Ok(Ok(Err(stream))) => {
            let to = front.public_url.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                std::future::ready(Ok::<_, Infallible>(redirect(&request, to.as_deref())))
            });
            drive(stream, service, front.options, shutdown).await;
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a handshake failed"),
        Err(_) => tracing::debug!(%peer, "a handshake took too long"),
    }
}

/// Requests of one connection, each with where it comes from, and with the worker that has presented a certificate.
async fn serve_http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    (peer, worker): (IpAddr, Option<PeerWorker>),
    front: Front,
    shutdown: CancellationToken,
) {
    let Front { router, options, proxies, .. } = front;
    let service = service_fn(move |mut request: Request<Incoming>| {
        let source = PeerAddress(proxies.client(peer, request.headers()));
        request.extensions_mut().insert(source);
        if let Some(worker) = &worker {
            request.extensions_mut().insert(worker.clone());
        }
        router.clone().oneshot(request)
    });
    drive(stream, service, options, shutdown).await;
}

async fn drive<S, V>(stream: S, service: V, options: ConnectionOptions, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    V: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    V::Future: Send + 'static,
{
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_header_size(limits::HEAD_BYTES_MAX)
        .max_buf_size(limits::CONNECTION_BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Best effort: a client that is turned away in a flood may get no answer.
fn turn_away(stream: TcpStream) {
    tracing::debug!("a connection was turned away: too many are open");
    let _ = stream.try_write(FULL.as_bytes());
}

/// No more connections than there are files for them, once the limit is raised.
fn within_files(connections_max: usize) -> usize {
    let Some(files) = open_files::raise() else { return connections_max };
    // At least half of a small limit is for connections.
    let room = files.saturating_sub(FILES_BESIDE).max(files / 2);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if room < connections_max {
        tracing::warn!(
            files,
            connections = room,
            "the limit on open files allows fewer connections than configured; raise it (LimitNOFILE=, ulimit -n)"
        );
    }
    room.min(connections_max)
}
