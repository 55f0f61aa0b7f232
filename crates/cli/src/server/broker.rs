//! Where the broker of workers' calls is, and by which authority it is trusted, as flags.

use std::path::{Path, PathBuf};

use clap::Args;
use interlock_worker::BrokerAddress;

use crate::client::trust;
use crate::output::exit::{Exit, ExitError};

#[derive(Args)]
pub struct BrokerArg {
    /// The broker that workers may make their calls over: a Redis, as in `redis://HOST:PORT`, or `rediss://…` with TLS. It is not
    /// trusted: whatever it loses, repeats or forges, nothing is lost, doubled or believed.
    #[arg(long, env = "INTERLOCK_BROKER", value_name = "URL")]
    broker: Option<String>,
    /// The authority (PEM) that has signed the certificate of a broker at `rediss://…`: it is trusted, and no other. Without
    /// it, those that this machine trusts.
    #[arg(long, env = "INTERLOCK_BROKER_CA", value_name = "FILE")]
    broker_ca: Option<PathBuf>,
}

impl BrokerArg {
    /// As it was given, for a process of our own.
    pub fn as_text(&self) -> Option<&str> {
        self.broker.as_deref()
    }

    /// The authority's file, for a process of our own.
    pub fn authority(&self) -> Option<&Path> {
        self.broker_ca.as_deref()
    }

    /// Not parsed with the flag: what cannot be read is not repeated, since it may hold a password.
    pub fn address(&self) -> anyhow::Result<Option<BrokerAddress>> {
        let parsed = self.broker.as_deref().map(str::parse::<BrokerAddress>).transpose();
        let parsed = parsed.map_err(|error| ExitError::saying(Exit::Config, format!("--broker: {error}")))?;
        let (address, path) = match (&parsed, &self.broker_ca) {
            (_, None) => return Ok(parsed),
            (None, Some(_)) => {
                let what = "--broker-ca (INTERLOCK_BROKER_CA) names the authority of a broker, and there is none: name it with \
                            --broker";
                return Err(ExitError::saying(Exit::Config, what));
            }
            (Some(address), Some(path)) => (address, path),
        };
        let trusting = address.clone().trusting(&trust::read(path)?);
        trusting
            .map(Some)
            .map_err(|error| ExitError::saying(Exit::Config, format!("--broker-ca {}: {error}", path.display())))
    }
}
