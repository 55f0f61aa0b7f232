//! What a server is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use interlock_broker::BrokerAddress;
use interlock_core::ids::TenantId;
use interlock_core::time::Millis;

use crate::connections::{ConnectionOptions, TrustedProxies};
use crate::identity::oidc::Provider;
use crate::identity::{IdentityOptions, ServerSecret};
use crate::tls::TlsOptions;
use crate::{limits, live};

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

pub(crate) const fn scheme(encrypted: bool) -> &'static str {
    if encrypted { "https" } else { "http" }
}
