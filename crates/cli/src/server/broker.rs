//! Where the broker of workers' calls is, as a flag.

use clap::Args;
use interlock_worker::BrokerAddress;

use crate::output::exit::{Exit, ExitError};

#[derive(Args)]
pub struct BrokerArg {
    /// The broker that workers may make their calls over: a Redis, as in `redis://HOST:PORT`, or `rediss://…` with TLS. It is not
    /// trusted: whatever it loses, repeats or forges, nothing is lost, doubled or believed.
    #[arg(long, env = "INTERLOCK_BROKER", value_name = "URL")]
    broker: Option<String>,
}

impl BrokerArg {
    /// As it was given, for a process of our own.
    pub fn as_text(&self) -> Option<&str> {
        self.broker.as_deref()
    }

    /// Not parsed with the flag: what cannot be read is not repeated, since it may hold a password.
    pub fn address(&self) -> anyhow::Result<Option<BrokerAddress>> {
        let parsed = self.broker.as_deref().map(str::parse).transpose();
        parsed.map_err(|error: interlock_worker::InvalidBroker| {
            ExitError::saying(Exit::Config, format!("--broker: {error}"))
        })
    }
}
