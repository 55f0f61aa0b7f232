//! `interlock server`: the engine and its HTTP surface, for workers elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use interlock_core::ids::TenantId;
use interlock_core::limits;
use interlock_core::time::Millis;
use interlock_engine::{Engine, EngineOptions};
use interlock_server::{Server, ServerOptions};
use interlock_store::Tenant;
use tokio_util::sync::CancellationToken;

use crate::open;

/// The tenant of requests that name none, until there are identities.
const DEFAULT_TENANT: &str = "default";

#[derive(Args)]
pub struct ServerArgs {
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub http: HttpArgs,
}

#[derive(Args)]
pub struct EngineArgs {
    /// The folder that holds the embedded store; made if it is not there.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
    /// Where the store is: `sqlite:PATH` or `postgres://…`; by default a SQLite file in the data folder.
    #[arg(long, env = "INTERLOCK_STORE")]
    store: Option<String>,
    /// How long a worker session lives without a renewal, in milliseconds; it renews four times in that span.
    #[arg(long, env = "INTERLOCK_SESSION_LEASE_MS", default_value_t = limits::SESSION_LEASE.0)]
    session_lease_ms: u64,
    /// How long finished runs are kept, in days; 0 keeps them for ever.
    #[arg(long, env = "INTERLOCK_RETENTION_DAYS", default_value_t = 0)]
    retention_days: u64,
}

#[derive(Args)]
pub struct HttpArgs {
    /// Where to listen; anything but loopback needs a token.
    #[arg(long, env = "INTERLOCK_LISTEN", default_value = "127.0.0.1:8420")]
    listen: SocketAddr,
    /// A file that holds the token which guards every route but the health checks.
    #[arg(long, env = "INTERLOCK_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

impl EngineArgs {
    pub fn url(&self) -> anyhow::Result<String> {
        if let Some(url) = &self.store {
            return Ok(url.clone());
        }
        std::fs::create_dir_all(&self.data)?;
        Ok(format!("sqlite:{}", self.data.join("interlock.db").display()))
    }

    fn options(&self) -> anyhow::Result<EngineOptions> {
        anyhow::ensure!(
            self.session_lease_ms >= 400,
            "--session-lease-ms is {}, the least is 400",
            self.session_lease_ms
        );
        let mut options = open::engine_options();
        options.session_lease = Millis(self.session_lease_ms);
        options.session_renewal = Millis(self.session_lease_ms / 4);
        options.reap_every = Millis((self.session_lease_ms / 8).clamp(50, 1_000));
        if self.retention_days > 0 {
            let mut sweep = interlock_store::Sweep::new(interlock_core::time::Timestamp(0));
            sweep.runs_kept = Millis::from_hours(24 * self.retention_days);
            options.retention = Some(sweep);
        }
        Ok(options)
    }

    pub async fn open(&self) -> anyhow::Result<Engine> {
        open::engine(&self.url()?, self.options()?).await
    }
}

impl HttpArgs {
    pub async fn bind(&self, engine: &Engine, tenant: TenantId) -> anyhow::Result<Server> {
        let options = ServerOptions {
            listen: self.listen,
            token: self.token_file.as_deref().map(crate::token::read).transpose()?,
            ..ServerOptions::new(tenant)
        };
        Ok(Server::bind(engine.clone(), options).await?)
    }
}

pub async fn run(args: ServerArgs) -> anyhow::Result<()> {
    let engine = args.engine.open().await?;
    let tenant = tenant(&engine, DEFAULT_TENANT).await?;
    let server = args.http.bind(&engine, tenant).await?;
    println!("interlock listens on http://{}", server.address()?);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        crate::shutdown::asked().await;
        stopping.cancel();
    });
    server.run(stop).await?;
    engine.stop().await;
    engine.store().clone().close().await;
    Ok(())
}

/// The tenant of this name, made if it is not there.
pub async fn tenant(engine: &Engine, name: &str) -> anyhow::Result<TenantId> {
    if let Some(tenant) = engine.store().tenant_by_name(name).await? {
        return Ok(tenant.id);
    }
    let id = TenantId(engine.fresh_id());
    match engine.put_tenant(Tenant::new(id, name, engine.now())).await {
        Ok(()) => Ok(id),
        // Another server on the same database made it in between.
        Err(error) => match engine.store().tenant_by_name(name).await? {
            Some(tenant) => Ok(tenant.id),
            None => Err(error.into()),
        },
    }
}
