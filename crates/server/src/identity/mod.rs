//! Who the caller is, and how that is proven.
//!
//! [`Caller`] is what a handler gets: the tenant, roles and groups of the credential, and never of the request.
//! [`Identity`] finds it: [`authenticate`] reads the credential of a request, [`cache`] keeps keys that were just
//! looked up, [`enrol`] knows workers by their certificates, [`key`] knows how a key is written, [`secret`] hashes what
//! must not be stored. [`keys`] makes keys, [`key_names`] tells which one a row names; [`first_key`] gives a new store its first one. People prove who they are by
//! a [`password`] ([`login_throttle`] slows guessing down, [`refused_logins`] tells of it) or by an identity provider ([`oidc`]), and then have a
//! [`session`]; a right to decide that one lends another is a [`delegation`]; a [`shown`] credential is looked at again
//! while its request waits; a [`code`] takes a browser's visit over to a command line.

pub mod access;
mod authenticate;
mod cache;
mod caller;
pub(crate) mod code;
pub mod delegation;
pub mod enrol;
pub mod first_key;
pub mod fresh;
pub mod key;
pub mod key_names;
pub mod keys;
mod login;
mod login_throttle;
pub mod note;
pub mod oidc;
mod password;
pub mod people;
mod rate;
mod refused_logins;
mod renew;
mod secret;
mod session;
mod shown;
pub mod slack;
mod ws_token;

use std::sync::Arc;

use interlock_core::time::Millis;
use interlock_engine::Engine;

pub use caller::{Caller, Via};
pub use keys::{NewKey, create_key};
pub use secret::{SecretError, ServerSecret};
pub use shown::{LastingCredential, ShownCredential, ShownKey};

/// Everything the server needs to find the caller of a request. Cheap to clone.
#[derive(Clone)]
pub struct Identity(Arc<SharedIdentity>);

struct SharedIdentity {
    engine: Engine,
    secret: ServerSecret,
    options: IdentityOptions,
    keys: cache::Cache,
    rates: rate::Rates,
    passwords: password::Passwords,
    refused_logins: refused_logins::RefusedLogins,
    workers: enrol::LiveWorkers,
}

/// How long things last, and how careful browsers are told to be.
#[derive(Debug, Clone, Copy)]
pub struct IdentityOptions {
    pub requests_per_min: Option<u32>,
    /// A visit of a person, from signing in.
    pub session: Millis,
    /// A link by which a password is set.
    pub invite: Millis,
    /// Cookies only over HTTPS.
    pub secure_cookies: bool,
}

impl Identity {
    pub fn new(engine: Engine, secret: ServerSecret, options: IdentityOptions) -> Self {
        let keys = cache::Cache::new(engine.sign_in().remote_wakes());
        let (rates, passwords) = (rate::Rates::default(), password::Passwords::default());
        let workers = enrol::LiveWorkers::default();
        let refused_logins = refused_logins::RefusedLogins::default();
        Self(Arc::new(SharedIdentity { engine, secret, options, keys, rates, passwords, refused_logins, workers }))
    }

    pub fn options(&self) -> &IdentityOptions {
        &self.0.options
    }

    pub(crate) fn passwords(&self) -> &password::Passwords {
        &self.0.passwords
    }

    fn refused_logins(&self) -> &refused_logins::RefusedLogins {
        &self.0.refused_logins
    }

    fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub fn secret(&self) -> &ServerSecret {
        &self.0.secret
    }

    /// How often this server has written on keys, people, workers or tenants.
    fn changes(&self) -> u64 {
        self.0.keys.changes()
    }

    /// After every write on keys, people or tenants: what was looked up before counts no more.
    pub fn forget(&self) {
        self.0.keys.clear();
    }
}
