//! A server in front of the harness's engine, on a loopback port of its own, and a key that may use it.

use std::net::{Ipv4Addr, SocketAddr};

use interlock_core::tenant::identity::Role;
use interlock_server::identity::{NewKey, create_key};
use interlock_server::{ConnectionOptions, Server, ServerError, ServerOptions};
use interlock_worker::BrokerAddress;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::harness::Harness;

pub struct Front {
    pub address: SocketAddr,
    /// A real key: requests are authenticated as in production.
    pub token: String,
    /// A key of a worker.
    pub worker: String,
    /// A key of an admin, who makes people.
    pub admin: String,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), ServerError>>,
}

impl Front {
    pub async fn open(harness: &Harness) -> anyhow::Result<Self> {
        Self::open_with(harness, None).await
    }

    /// The same for a worker whose calls go over a broker.
    pub async fn open_with(harness: &Harness, broker: Option<BrokerAddress>) -> anyhow::Result<Self> {
        let options = ServerOptions {
            broker,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            requests_per_min: None,
            // All watchers are one tenant's, on this machine.
            connections: ConnectionOptions { per_address_max: usize::MAX, ..ConnectionOptions::default() },
            live_streams_per_tenant_max: usize::MAX,
            ..ServerOptions::new(harness.tenants[0])
        };
        let new = NewKey::new(harness.tenants[0], "bench", [Role::Operator].into_iter().collect());
        let token = create_key(&harness.engine, &options.secret, new).await?.1.reveal().to_owned();
        let new = NewKey::new(harness.tenants[0], "bench-worker", [Role::Worker].into_iter().collect());
        let worker = create_key(&harness.engine, &options.secret, new).await?.1.reveal().to_owned();
        let new = NewKey::new(harness.tenants[0], "bench-admin", [Role::Admin].into_iter().collect());
        let admin = create_key(&harness.engine, &options.secret, new).await?.1.reveal().to_owned();
        let server = Server::bind(harness.engine.clone(), options).await?;
        let address = server.address()?;
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.run(stop.clone()));
        Ok(Self { address, token, worker, admin, stop, serving })
    }

    pub async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.serving.await??)
    }
}
