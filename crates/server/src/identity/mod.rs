//! Who asks, and how that is proven.
//!
//! [`Caller`] is what a handler gets: the tenant, roles and groups of the credential, and never of the request.
//! [`Identity`] finds it: [`authenticate`] reads the credential of a request, [`cache`] keeps keys that were just
//! looked up, [`key`] knows how a key is written, [`secret`] hashes what must not be stored. [`keys`] makes and revokes
//! keys; [`first_key`] gives a new store its first one.

mod authenticate;
mod cache;
mod caller;
pub mod first_key;
pub mod key;
pub mod keys;
mod rate;
mod secret;

use std::sync::Arc;

use interlock_engine::Engine;

pub use caller::{Caller, Via};
pub use keys::{NewKey, create_key};
pub use secret::{SecretError, ServerSecret};

/// Everything the server needs to know who asks. Cheap to clone.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    engine: Engine,
    secret: ServerSecret,
    keys: cache::Cache,
    rates: rate::Rates,
    requests_per_min: Option<u32>,
}

impl Identity {
    pub fn new(engine: Engine, secret: ServerSecret, requests_per_min: Option<u32>) -> Self {
        let keys = cache::Cache::new(engine.store().remote_wakes());
        Self(Arc::new(Inner { engine, secret, keys, rates: rate::Rates::default(), requests_per_min }))
    }

    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub fn secret(&self) -> &ServerSecret {
        &self.0.secret
    }

    /// After every write on keys, people or tenants: what was looked up before counts no more.
    pub fn forget(&self) {
        self.0.keys.clear();
    }
}
