//! What every route can reach.

use std::sync::Arc;

use interlock_core::ids::TenantId;
use interlock_core::json::Hash;
use interlock_engine::Engine;
use tokio_util::sync::CancellationToken;

use crate::listen::ServerOptions;

#[derive(Clone)]
pub struct AppState(Arc<Inner>);

struct Inner {
    engine: Engine,
    default_tenant: TenantId,
    token_hash: Option<Hash>,
    shutdown: CancellationToken,
}

impl AppState {
    pub(crate) fn new(engine: Engine, options: &ServerOptions, shutdown: CancellationToken) -> Self {
        let token_hash = options.token.as_ref().map(|token| Hash::of(token.as_bytes()));
        Self(Arc::new(Inner { engine, default_tenant: options.default_tenant, token_hash, shutdown }))
    }

    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// The tenant of a request that names none.
    pub fn default_tenant(&self) -> TenantId {
        self.0.default_tenant
    }

    pub(crate) fn token_hash(&self) -> Option<Hash> {
        self.0.token_hash
    }

    /// Fires when the server stops: whoever waits for news answers with what there is.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }
}
