//! What every route can reach.

use std::net::SocketAddr;
use std::sync::Arc;

use interlock_core::ids::TenantId;
use interlock_engine::Engine;
use tokio_util::sync::CancellationToken;

use crate::identity::Identity;
use crate::listen::ServerOptions;
use crate::live::Hub;

#[derive(Clone)]
pub struct AppState(Arc<Inner>);

struct Inner {
    engine: Engine,
    default_tenant: TenantId,
    identity: Identity,
    listen: SocketAddr,
    shutdown: CancellationToken,
    hub: Hub,
}

impl AppState {
    pub(crate) fn new(engine: Engine, options: &ServerOptions, shutdown: CancellationToken) -> Self {
        let identity = Identity::new(engine.clone(), options.secret.clone(), options.requests_per_min);
        let (default_tenant, listen) = (options.default_tenant, options.listen);
        let hub = Hub::new(engine.clone(), shutdown.clone());
        Self(Arc::new(Inner { engine, default_tenant, identity, listen, shutdown, hub }))
    }

    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The tenant of people who sign in without naming one.
    pub fn default_tenant(&self) -> TenantId {
        self.0.default_tenant
    }

    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// Whether only this machine can reach the server.
    pub(crate) fn is_on_loopback(&self) -> bool {
        self.0.listen.ip().is_loopback()
    }

    /// Fires when the server stops: whoever waits for news answers with what there is.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// Everybody who watches live.
    pub(crate) fn hub(&self) -> &Hub {
        &self.0.hub
    }
}
