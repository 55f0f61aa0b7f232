//! The socket: where the server listens, and how it stops.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use interlock_broker::BrokerAddress;
use interlock_core::ids::TenantId;
use interlock_core::time::Millis;
use interlock_engine::{Engine, EngineError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::connections::{self, ConnectionOptions, Front, TrustedProxies};
use crate::identity::oidc::Provider;
use crate::identity::{Identity, IdentityOptions, SecretError, ServerSecret};
use crate::links::setup_link;
use crate::router::router_of;
use crate::state::AppState;
use crate::tls::{Tls, TlsError, TlsOptions};
use crate::{broker, limits, live};

/// The port of a server for which no other one is configured.
pub const DEFAULT_PORT: u16 = 8420;

#[derive(Clone)]
pub struct ServerOptions {
    /// Loopback by default.
    pub listen: SocketAddr,
    /// The tenant of people who sign in without naming one.
    pub default_tenant: TenantId,
    /// The key of all hashes of credentials. Shared by all servers of one store.
    pub secret: ServerSecret,
    /// How often one client may ask, unless its key says otherwise.
    pub requests_per_min: Option<u32>,
    /// How people reach the server, if not by the address it listens on: `https://interlock.example.org`.
    pub public_url: Option<String>,
    /// How long a visit of a person lasts, and a link by which a password is set.
    pub session: Millis,
    pub invite: Millis,
    /// Who vouches for people.
    pub oidc: Option<Provider>,
    /// How long requests that are under way may take once the shutdown has begun.
    pub drain: Duration,
    /// How long connections are still taken once the shutdown has begun, while `/readyz` says that it has: the load
    /// balancer looks there, and sends no more connections before the port closes.
    pub linger: Duration,
    /// How many connections, and how slow they may be.
    pub connections: ConnectionOptions,
    /// Reverse proxies whose `X-Forwarded-For` is believed; none by default.
    pub trusted_proxies: TrustedProxies,
    /// HTTPS; plain HTTP where there is none.
    pub tls: Option<TlsOptions>,
    /// How many live streams one tenant may have open here.
    pub live_streams_per_tenant_max: usize,
    /// Where workers may make their calls over Redis Streams; they make requests where there is none.
    pub broker: Option<BrokerAddress>,
}

impl ServerOptions {
    /// With a secret of its own, which no other process knows.
    pub fn new(default_tenant: TenantId) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
            default_tenant,
            secret: ServerSecret::random(),
            requests_per_min: Some(limits::REQUESTS_PER_MIN),
            public_url: None,
            session: Millis::from_hours(12),
            invite: Millis::from_hours(1),
            oidc: None,
            drain: Duration::from_secs(10),
            linger: Duration::ZERO,
            connections: ConnectionOptions::default(),
            trusted_proxies: TrustedProxies::default(),
            tls: None,
            live_streams_per_tenant_max: live::limits::STREAMS_PER_TENANT_MAX,
            broker: None,
        }
    }
}

impl ServerOptions {
    pub(crate) fn identity(&self) -> IdentityOptions {
        let https = self.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        IdentityOptions {
            requests_per_min: self.requests_per_min,
            session: self.session,
            invite: self.invite,
            secure_cookies: https || self.tls.is_some() || !self.listen.ip().is_loopback(),
        }
    }
}

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
        let following = tls.clone().map(|tls| tls.follow(engine.clone(), shutdown.clone()));
        let state = AppState::new(engine, &options, tls.clone(), shutdown.clone());
        let hub = state.hub().clone();
        if let Some(broker) = state.broker() {
            tokio::spawn(broker::serve(state.clone(), Arc::clone(broker)));
        }
        // WebSockets have left HTTP, and so they are waited for on their own.
        let front = Front {
            router: router_of(state),
            options: options.connections,
            proxies: options.trusted_proxies.clone(),
            tls,
            public_url: options.public_url.as_deref().map(Into::into),
        };
        if let Some(following) = following {
            tokio::spawn(following);
        }
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

pub(crate) const fn scheme(encrypted: bool) -> &'static str {
    if encrypted { "https" } else { "http" }
}

/// Connections take over what their listener says. Left to itself the kernel holds megabytes for each watcher that does
/// not read, and the watcher is found slow only after them.
#[cfg(target_os = "linux")]
fn bound_unsent(listener: &TcpListener) {
    if let Err(error) = socket2::SockRef::from(listener).set_tcp_notsent_lowat(limits::UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "the kernel decides how much it holds for connections that do not read");
    }
}

#[cfg(not(target_os = "linux"))]
fn bound_unsent(_: &TcpListener) {}
