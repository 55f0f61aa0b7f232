//! The socket: where the server listens, and how it stops.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use interlock_engine::{Engine, EngineError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connections::Front;
use crate::identity::{Identity, SecretError};
use crate::links::setup_link;
use crate::options::{ServerOptions, scheme};
use crate::router::router_of;
use crate::state::AppState;
use crate::tls::{Tls, TlsError};
use crate::{broker, connections};

/// Why a server does not come up, or breaks off.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("HTTPS cannot be spoken: {0}")]
    Tls(#[from] TlsError),
    #[error("cannot listen on {at}")]
    Listen { at: SocketAddr, source: io::Error },
    #[error("the server broke off: {0}")]
    Serve(#[from] io::Error),
}

/// A bound server, ready to [`run`](Server::run).
pub struct Server {
    listener: TcpListener,
    engine: Engine,
    options: ServerOptions,
    tls: Option<Tls>,
}

impl Server {
    pub async fn bind(engine: Engine, options: ServerOptions) -> Result<Self, ServerError> {
        options.secret.claim(&engine.installation()).await?;
        let tls = options.tls.clone().map(|files| Tls::open(files, engine.now())).transpose()?;
        let at = options.listen;
        let listener = TcpListener::bind(at).await.map_err(|source| ServerError::Listen { at, source })?;
        bound_unsent(&listener);
        Ok(Self { listener, engine, options, tls })
    }

    /// Where it really listens: port 0 asks for any.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where a browser or a program on this machine finds it: "everywhere" is no place to go to.
    pub fn here(&self) -> io::Result<SocketAddr> {
        let mut address = self.address()?;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Ok(address)
    }

    /// The same as an address for browsers.
    pub fn url(&self) -> io::Result<String> {
        Ok(format!("{}://{}", scheme(self.tls.is_some()), self.here()?))
    }

    pub const fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// While the default tenant has no people: an address at which a person becomes its first admin. It works once,
    /// and not for long.
    pub async fn first_admin_link(&self) -> Result<Option<String>, EngineError> {
        let Self { engine, options, .. } = self;
        if !engine.for_tenant(options.default_tenant).users(None, 1).await?.is_empty() {
            return Ok(None);
        }
        let identity = Identity::new(engine.clone(), options.secret.clone(), options.identity());
        let invite = identity.invite_first_admin(options.default_tenant).await?;
        let address = self.here().unwrap_or(options.listen);
        let scheme = scheme(self.tls.is_some());
        let base = options.public_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        Ok(Some(setup_link(&base, &invite.token)))
    }

    /// Answers until `shutdown` fires, and then what is under way. The engine stays open.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ServerError> {
        let Self { listener, engine, options, tls } = self;
        // The port that was really taken is the one that must not be called.
        let options = ServerOptions { listen: listener.local_addr()?, ..options };
        let state = AppState::new(engine.clone(), &options, tls.clone(), shutdown.clone());
        let hub = state.hub().clone();
        if let Some(broker) = state.broker() {
            engine.supervise("broker", broker::serve(state.clone(), Arc::clone(broker)));
        }
        if let Some(tls) = tls.clone() {
            let (clock, shutdown) = (engine.clone(), shutdown.clone());
            engine.supervise("certificates", move || tls.clone().follow(clock.clone(), shutdown.clone()));
        }
        // WebSockets have left HTTP, and so they are waited for on their own.
        let front = Front {
            router: router_of(state),
            options: options.connections,
            proxies: options.trusted_proxies.clone(),
            tls,
            public_url: options.public_url.as_deref().map(Into::into),
        };
        let closing = CancellationToken::new();
        let serving = async {
            connections::serve(listener, front, closing.clone()).await;
            hub.drained().await;
        };
        let drained = async {
            shutdown.cancelled().await;
            tokio::time::sleep(options.linger).await;
            closing.cancel();
            tokio::time::sleep(options.drain).await;
        };
        tokio::select! {
            biased;
            () = serving => Ok(()),
            () = drained => {
                tracing::warn!("some requests did not end in time; their connections are closed");
                Ok(())
            }
        }
    }
}

/// Connections take over what their listener says. Left to itself the kernel holds megabytes for each watcher that does
/// not read, and the watcher is found slow only after them.
#[cfg(target_os = "linux")]
fn bound_unsent(listener: &TcpListener) {
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_notsent_lowat(crate::limits::UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the kernel decides how much it holds for connections that do not read");
    }
}

#[cfg(not(target_os = "linux"))]
fn bound_unsent(_: &TcpListener) {}
